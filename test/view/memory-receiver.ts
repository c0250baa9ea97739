import { messageOf } from '@catchword/base/errors';
import { type Mark, type Sink, SinkError, type SinkEvent } from '@catchword/sink-kit/sink';
import { hastyClock, SINK_NAME } from '../../src/contract/harness.ts';
import type { SinkConfig } from '../../src/relay/sink-config.ts';
import type { View } from '../../src/view/view.ts';

/** Waits a millisecond where the relay waits. */
export const QUICK = {
  ...hastyClock,
  sleep: (ms: number, signal?: AbortSignal) => hastyClock.sleep(Math.min(ms, 1), signal),
};

/** A seeded generator of numbers (mulberry32). */
export function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

interface Content {
  readonly products: ReadonlyMap<string, string>;
  /** As a receiver has it that drops events whose ids it knows, and events older than what it has of their product. */
  readonly deduplicated: ReadonlyMap<string, string>;
  readonly known: ReadonlySet<string>;
  /** The highest `seq` of the events of each product. */
  readonly newest: ReadonlyMap<string, number>;
  readonly mark: Mark | null;
}

function applied(
  content: ReadonlyMap<string, string>,
  events: readonly Pick<SinkEvent, 'vbid' | 'body'>[],
): Map<string, string> {
  const next = new Map(content);
  for (const { vbid, body } of events) {
    if (body === null) next.delete(vbid);
    else next.set(vbid, body);
  }
  return next;
}

/** A store that keeps what it had after each delivery, so that it can be set back, as from a backup. */
export function memoryReceiver(keepsMark: boolean, batch = 3) {
  const texts = new Map<string, string>();
  const contradictions: string[] = [];
  /** Products whose events it refuses. */
  const refused = new Set<string>();
  const empty: Content = {
    products: new Map(),
    deduplicated: new Map(),
    known: new Set(),
    newest: new Map(),
    mark: null,
  };
  let contents: Content[] = [empty];
  const last = (): Content => contents.at(-1) ?? empty;
  /** Whether a relay has opened it since it was set back, and has noted how far it is. */
  let isOpen = false;
  const listed: Pick<Sink, 'list' | 'apply'> = {
    list: async function* () {
      yield [...last().products].map(([vbid, body]) => ({ vbid, body }));
    },
    apply: async (events, extra, mark) => {
      const all = [...events, ...extra.map((vbid) => ({ vbid, body: null }))];
      const { products, deduplicated } = last();
      contents.push({
        ...last(),
        products: applied(products, all),
        deduplicated: applied(deduplicated, all),
        mark,
      });
    },
  };
  return {
    last,
    all: (): readonly Content[] => contents,
    contradictions,
    refused,
    keepsMark,
    isOpen: () => isOpen,
    deliveries: () => contents.length - 1,
    setBack: (deliveries: number): void => {
      isOpen = false;
      contents = contents.slice(0, Math.max(1, contents.length - deliveries));
    },
    config: (view: View | null): SinkConfig => ({
      name: SINK_NAME,
      kind: 'memory',
      address: 'memory',
      identity: 'memory',
      store: 'memory',
      refused: 'park',
      view,
      errorText: messageOf,
      make: async () => ({
        batch: { events: batch, chars: 1_000_000 },
        open: async (mark) => {
          setImmediate(() => {
            isOpen = true;
          });
          return keepsMark ? (last().mark ?? { ...mark, cursor: 0, at: 0, late: 0 }) : null;
        },
        ...(keepsMark && listed),
        deliver: async (events, mark) => {
          if (events.some(({ vbid }) => refused.has(vbid))) throw new SinkError('refused', 'refused by the test');
          for (const { id, text } of events) {
            if ((texts.get(id) ?? text) !== text) contradictions.push(`${texts.get(id)} and ${text}`);
            texts.set(id, text);
          }
          const { products, deduplicated, known, newest } = last();
          const fresh = events.filter(({ id, vbid, seq }) => !known.has(id) && seq >= (newest.get(vbid) ?? 0));
          contents.push({
            products: applied(products, events),
            deduplicated: applied(deduplicated, fresh),
            known: new Set([...known, ...fresh.map(({ id }) => id)]),
            newest: new Map([
              ...newest,
              ...events.map(({ vbid, seq }) => [vbid, Math.max(seq, newest.get(vbid) ?? 0)] as const),
            ]),
            mark,
          });
        },
        close: async () => {},
        check: async () => 'exists',
      }),
    }),
  };
}
