import { setImmediate as otherWork } from 'node:timers/promises';
import type { RecordedChange } from '@catchword/catalog/event';
import type { SinkEvent } from '@catchword/sink-kit/sink';
import { changesUpTo, createHistory } from '../store/history/history.ts';
import { legOf } from '../store/rows/sink-legs.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import { viewedChange } from '../view/viewed-change.ts';
import type { FeedContext } from './feed-context.ts';
import { ChangeEvent } from './read-batch.ts';

/** The products that the store should have: made from the history, because the mirror goes on changing. */
export function expectedProducts({ store, prepare, readOptions, stopping }: FeedContext, row: SinkRow) {
  const history = createHistory(store);
  const how = readOptions();
  const leg = legOf(row);

  function eventsOf(change: RecordedChange): SinkEvent[] {
    const seen = leg.tag === null ? change : viewedChange(prepare(leg), change, leg.tag, true);
    return seen === null || seen.body === null ? [] : [new ChangeEvent(seen, how)];
  }

  return {
    /** Reads all of them. Other sinks go on between the steps. */
    read: async function* (): AsyncGenerator<readonly SinkEvent[]> {
      for (const changes of changesUpTo(store, row.cursor)) {
        await otherWork();
        stopping.throwIfAborted();
        yield changes.flatMap(eventsOf);
      }
    },
    find: (vbid: string): SinkEvent[] => {
      const change = history.asOf(vbid, row.cursor);
      return change === null ? [] : eventsOf(change);
    },
  };
}
