import { difference, isEmpty } from '@catchword/catalog/content';
import type { RecordedChange } from '@catchword/catalog/event';
import { createHistory } from '../store/history/history.ts';
import { legOf } from '../store/rows/sink-legs.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { ViewForecast } from '../store/schema/sink-tables.ts';
import { absentText, createAbsence, noneText } from '../view/absent-members.ts';
import { seenBy, type View } from '../view/view.ts';
import { createContents, type PreparedViews } from './store-contents.ts';

/** Products that are judged before others get their turn. */
const STEP = 250;
/** Changes that are searched for them. */
const SEARCHED = 20_000;

/** What a product is for a store now, and what it would be: JSON, or null for nothing. */
export interface Judged {
  readonly vbid: string;
  /** What the store would get; null: nothing. */
  readonly op: 'created' | 'updated' | 'removed' | null;
  readonly before: string | null;
  readonly after: string | null;
}

function opOf(before: string | null, after: string | null): Judged['op'] {
  if (before === null) return after === null ? null : 'created';
  if (after === null) return 'removed';
  return isEmpty(difference(before, after)) ? null : 'updated';
}

/**
 * Compares what a store has with what it would have, product by product, as of `asOf`.
 * @param sink null: a store that has nothing
 * @param view what it would get; null: every product whole
 * @param see returns false to end it there
 */
export async function forecastView(
  store: Reader,
  sink: SinkRow | null,
  prepare: PreparedViews,
  view: View | null,
  asOf: number,
  signal: AbortSignal,
  see: (judged: Judged) => boolean = () => true,
): Promise<ViewForecast> {
  const failedBefore = view?.failures().count ?? 0;
  const history = createHistory(store);
  const contents = createContents(store, prepare, history);
  const leg = sink && legOf(sink);
  const absence = createAbsence(view?.paths ?? []);
  const counts = { has: 0, matching: 0, created: 0, updated: 0, removed: 0 };

  function judge(change: RecordedChange): boolean {
    if (change.body !== null) absence.see(change.body);
    // Of a store that is being filled, or brought to a view, it counts what the store will have.
    const before = (leg && contents.shown(leg, change, Math.max(sink.cursor, leg.to))) ?? null;
    const after = seenBy(view, change);
    if (before !== null) counts.has++;
    if (after !== null) counts.matching++;
    const op = opOf(before, after);
    if (op !== null) counts[op]++;
    return see({ vbid: change.vbid, op, before, after });
  }

  for (let at = 0; at < asOf; ) {
    signal.throwIfAborted();
    const { changes, to } = history.newest(at, Math.min(at + SEARCHED, asOf), asOf, STEP);
    if (!changes.every(judge)) break;
    at = Math.max(to, at + 1);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const unknown = absence.found().filter(({ isKnown }) => !isKnown);
  // A filter may name a rare member, which no product has now.
  const isMistyped = unknown.some(({ near }) => near !== undefined || counts.updated > 0);
  const isEmpty = view !== null && view.where !== null && counts.matching === 0 && absence.seen() > 0;
  const absent = [...unknown.map(absentText), ...(isEmpty ? [noneText(absence.seen())] : [])];
  const failed = (view?.failures().count ?? 0) - failedBefore;
  return { ...counts, failed, ...(absent.length > 0 && { absent }), ...(isMistyped && { isMistyped }) };
}
