import type { Verifier } from './sink.ts';

/** Makes a verifier each of whose calls to its store goes through `run`. */
export function wrapVerifier(
  verifier: Verifier,
  run: <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T>,
): Verifier {
  return {
    compares: verifier.compares,
    digestOf: (event, deep) => verifier.digestOf(event, deep),
    ...(verifier.sums !== undefined && {
      sums: (...args) => run(args[2], async () => (await verifier.sums?.(...args)) ?? new Map()),
    }),
    ...(verifier.differences !== undefined && {
      differences: (...args) => run(args[1], async () => (await verifier.differences?.(...args)) ?? new Map()),
    }),
    products: async function* (...args) {
      const steps = verifier.products(...args)[Symbol.asyncIterator]();
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
    ...(verifier.repair !== undefined && {
      repair: (...args) => run(args[3], async () => await verifier.repair?.(...args)),
    }),
  };
}
