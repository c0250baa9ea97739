import { difference, isEmpty } from '../catalog/content.ts';
import type { RecordedChange } from '../catalog/event.ts';
import type { History } from '../store/history/history.ts';
import type { SinkRow, ViewForecast } from '../store/rows/sink-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import { createContents, fromOf, type PreparedViews } from './store-contents.ts';

/** Products that are judged before others get their turn. */
const STEP = 250;
/** Changes that are searched for them. */
const SEARCHED = 20_000;

/** What a product is for a store now, and what it would be: JSON, or null for nothing. */
export interface Judged {
  readonly vbid: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** What the store would have of a product; null: nothing. */
type Wanted = (change: RecordedChange) => string | null;

/**
 * Compares what a store has with what it would have, product by product, as of `asOf`. Of a store that is being filled, it
 * counts what it will have.
 */
export async function forecastView(
  store: Reader,
  history: Pick<History, 'asOf' | 'newest'>,
  sink: SinkRow,
  prepare: PreparedViews,
  wanted: Wanted,
  asOf: number,
  signal: AbortSignal,
  see: (judged: Judged) => void = () => {},
): Promise<Omit<ViewForecast, 'failed'>> {
  const views = store.sinks.views(sink.id);
  const had = createContents(views, prepare, history, store.changes.prunedTo());
  const from = fromOf(sink);
  const counts = { has: 0, matching: 0, created: 0, updated: 0, removed: 0 };

  function judge(change: RecordedChange): void {
    const before = had(from, change) ?? null;
    const after = change.body === null ? null : wanted(change);
    if (before !== null) counts.has++;
    if (after !== null) counts.matching++;
    if (before === null && after !== null) counts.created++;
    else if (before !== null && after === null) counts.removed++;
    else if (before !== null && after !== null && !isEmpty(difference(before, after))) counts.updated++;
    see({ vbid: change.vbid, before, after });
  }

  for (let at = 0; at < asOf; ) {
    signal.throwIfAborted();
    const { changes, to } = history.newest(at, Math.min(at + SEARCHED, asOf), asOf, STEP);
    for (const change of changes) judge(change);
    at = Math.max(to, at + 1);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return counts;
}
