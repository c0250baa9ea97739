import { messageOf } from '@catchword/base/errors';
import { type Mark, SinkError, type SinkEvent } from '@catchword/sink-kit/sink';
import { SINK_NAME } from '../../src/contract/harness.ts';
import type { SinkConfig } from '../../src/relay/sink-config.ts';

function rowOf(event: SinkEvent, isLast: boolean, mark: Mark) {
  const { seq, at, vbid, body } = event;
  const late = mark.late > 0 ? { ...mark, late: seq } : undefined;
  return { seq, vbid, body, mark: late ?? (isLast ? mark : { ...mark, cursor: seq, at }) };
}

export type Memory = ReturnType<typeof memory>;

/** A store in memory, whose rows a test can remove. Each row keeps the mark of that moment. */
export function memory(batch = { events: 100, chars: 1_000_000 }) {
  const store = {
    rows: [] as ReturnType<typeof rowOf>[],
    poison: new Set<number>(),
    isDown: false,
    /** Returned from `open`, if set. */
    openResult: undefined as Mark | undefined,
    /** Events and characters of each delivery. */
    calls: [] as { readonly events: number; readonly chars: number }[],
    seqs: (): number[] => store.rows.map(({ seq }) => seq),
    config: (more: Partial<SinkConfig> = {}): SinkConfig => ({
      name: SINK_NAME,
      kind: 'memory',
      address: 'memory',
      identity: 'memory',
      store: 'memory',
      refused: 'park',
      view: null,
      errorText: messageOf,
      make: async () => ({
        batch,
        open: async (mark) => {
          if (store.isDown) throw new SinkError('unavailable', 'it is down');
          return store.openResult ?? store.rows.at(-1)?.mark ?? { ...mark, cursor: 0, at: 0, late: 0 };
        },
        deliver: async (events, mark) => {
          if (store.isDown) throw new SinkError('unavailable', 'it is down');
          if (events.some(({ seq }) => store.poison.has(seq))) throw new SinkError('refused', 'poison');
          store.calls.push({
            events: events.length,
            chars: events.reduce((sum, { text }) => sum + text.length, 0),
          });
          store.rows.push(...events.map((event, index) => rowOf(event, index === events.length - 1, mark)));
        },
        close: async () => {},
        check: async () => 'exists',
      }),
      ...more,
    }),
  };
  return store;
}
