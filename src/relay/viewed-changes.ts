import type { History } from '../store/history/history.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import { changeBetween, type ViewedLog, viewedChange, viewedLog } from '../view/viewed-change.ts';
import { createContents, type PreparedViews, transitionAt, viewAt } from './store-contents.ts';

/**
 * How a sink with a view gets changes.
 * @param cursor where reading starts
 * @returns null if the sink gets every change as it is
 */
export function viewedChanges(
  { sinks, changes }: Reader,
  sink: SinkRow,
  cursor: number,
  prepare: PreparedViews,
  history: Pick<History, 'asOf'>,
): ViewedLog | null {
  const views = sinks.views(sink.id);
  const current = viewAt(views, sink.generation);
  if (current === undefined) return null;
  const view = prepare(current) ?? { of: (_vbid: string, body: string) => body, keys: null };
  const tag = current.tag ?? 'all';
  const prunedTo = changes.prunedTo();
  const transition = transitionAt(views, sink, cursor);
  if (transition !== undefined) {
    const had = createContents(views, prepare, history, prunedTo);
    return {
      keys: null,
      of: (change) => {
        const before = transition.unsure.has(change.vbid) ? undefined : had(transition, change);
        const after = change.body === null ? null : view.of(change.vbid, change.body);
        // Another transition, or the same one from another position, may send the change with another content.
        const from = `${current.generation}.${before === undefined ? 'x' : transition.fromCursor}`;
        return changeBetween(change, before ?? null, after, `${tag}.${from}`, before === undefined);
      },
    };
  }
  // A view without a tag is that of a sink that never had one.
  if (current.tag === null) return null;
  if (cursor < sink.backfillTo) {
    return {
      keys: null,
      of: (change) => {
        const viewed = viewedChange(view, change, tag, true);
        return viewed?.op === 'removed' && !sink.backfillRemoved ? null : viewed;
      },
    };
  }
  return viewedLog(view, tag, cursor, prunedTo);
}
