import type { Sink } from './sink.ts';

/** What compares a store with its source, and repairs it. */
export type Listed = Pick<Sink, 'list' | 'digests' | 'apply'>;

/** Makes the same calls, each of which goes through `run`. */
export function wrapListed(store: Listed, run: <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T>): Listed {
  const { list, digests, apply } = store;
  return {
    ...(list !== undefined && {
      list: async function* (...args) {
        const steps = await run(args[3], async () => list.apply(store, args)[Symbol.asyncIterator]());
        try {
          for (;;) {
            const { done, value } = await run(args[3], () => steps.next());
            if (done === true) return;
            yield value;
          }
        } finally {
          // After an error, too: what the store has open, such as a file.
          void steps.return?.().catch(() => {});
        }
      },
    }),
    ...(digests !== undefined && {
      digests: {
        digestOf: (event, listing) => digests.digestOf(event, listing),
        compares: (listing) => digests.compares?.(listing) ?? null,
        ...(digests.sums !== undefined && {
          sums: (...args) => run(args[2], async () => (await digests.sums?.(...args)) ?? new Map()),
        }),
        ...(digests.differences !== undefined && {
          differences: (...args) => run(args[2], async () => (await digests.differences?.(...args)) ?? new Map()),
        }),
      },
    }),
    ...(apply !== undefined && { apply: (...args) => run(args[3], async () => await apply.apply(store, args)) }),
  };
}
