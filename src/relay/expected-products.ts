import { setImmediate as otherWork } from 'node:timers/promises';
import type { RecordedChange } from '../catalog/event.ts';
import { changesUpTo, createHistory } from '../store/history/history.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import { viewedChange } from '../view/viewed-change.ts';
import type { FeedContext } from './feed-context.ts';
import { ChangeEvent } from './read-batch.ts';
import type { SinkEvent } from './sink.ts';
import { viewAt } from './store-contents.ts';

/** The products that the store should have: made from the history, because the mirror goes on changing. */
export function expectedProducts({ store, prepare, readOptions, stopping }: FeedContext, row: SinkRow) {
  const history = createHistory(store);
  const how = readOptions();
  const view = viewAt(store.sinks.views(row.id), row.generation);

  function eventsOf(change: RecordedChange): SinkEvent[] {
    const { tag = null } = view ?? {};
    const seen = view === undefined || tag === null ? change : viewedChange(prepare(view), change, tag, true);
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
