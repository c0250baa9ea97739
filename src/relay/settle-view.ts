import type { Unusual } from '@catchword/catalog/run-types';
import { isNew, isSameView, legOf } from '../store/rows/sink-legs.ts';
import { isFed, type SinkRow } from '../store/rows/sink-rows.ts';
import type { ViewForecast } from '../store/schema/sink-tables.ts';
import type { ViewText } from '../view/view.ts';
import { createExit, holdSink, leavingText, tooMany, writeIf } from './exit-limit.ts';
import type { FeedContext } from './feed-context.ts';
import { WHOLE } from './store-contents.ts';
import { forecastView } from './view-forecast.ts';

/**
 * Says why a view waits for a person: it would remove too much of what the store has, or names what no product has.
 * @returns null if it may come
 */
export function whyHeld(limits: Pick<FeedContext, 'removalLimit'>, forecast: ViewForecast): string | null {
  const found = tooMany(limits, forecast.removed, forecast.has);
  if (found !== null) return `its view was changed, and ${leavingText(found)}`;
  // A store would get, or lose, that member of product after product. What is merely rare may come.
  return forecast.isMistyped === true ? `its view names a member wrongly: ${forecast.absent?.join('; ')}` : null;
}

/**
 * Holds the sink if the wanted view waits for a person.
 * @returns whether it is held
 */
async function holdIfTooMuch(context: FeedContext, row: SinkRow, wanted: ViewText): Promise<boolean> {
  const { store, prepare, stopping } = context;
  const has = isFed(row) ? row : null;
  // A sink that is older than the first product has nothing to be filled with.
  const asOf = has === null ? store.changes.lastSeq() : Math.max(row.cursor, legOf(row).to);
  const forecast = await forecastView(store, has, prepare, prepare(wanted), asOf, stopping);
  const reason = whyHeld(context, forecast);
  if (reason === null) {
    const doubts = forecast.absent?.join('; ');
    if (doubts !== undefined) context.log.warn({ sink: row.name, reason: doubts }, 'the view may be a mistake');
    return false;
  }
  holdSink(context, row, { why: 'view', ...wanted, forecast, isApproved: false }, reason);
  return true;
}

/** Why the changes of an unusual run hold a sink. */
export function unusualReason({ run, field, products, living, earlier }: Unusual & { readonly run: number }): string {
  const who =
    earlier === undefined
      ? `run ${run}, which comes next,`
      : `run ${run}, which comes next, and the runs of the 24 hours before`;
  return `${who} emptied ${field} of ${products} of ${living} products`;
}

/** Holds the sink if the changes of an unusual run come next. @returns whether it is held */
export function holdForRun(context: FeedContext, row: SinkRow): boolean {
  const unusual = context.store.runs.unusual(row.approvedRun);
  const { to } = legOf(row);
  const isFilling = row.cursor < to && unusual !== undefined && to >= unusual.from;
  if (unusual === undefined || (!isFilling && row.cursor < unusual.from - 1)) return false;
  const reason = unusualReason(unusual);
  holdSink(context, row, { why: 'run', run: unusual.run, reason }, reason);
  return true;
}

/**
 * Brings a sink to the view of its settings, before it is opened.
 * @returns whether it may be opened now; `changed`: look again; `empty`: the mirror has had no product so far
 */
export async function settleView(context: FeedContext, row: SinkRow): Promise<'ready' | 'changed' | 'held' | 'empty'> {
  const { store, config, log } = context;
  const wanted = config.view ?? WHOLE;
  const { held } = row;
  const heldView = held?.why === 'view' ? held : null;
  if (isSameView(legOf(row), wanted)) {
    if (heldView === null && !isNew(row)) return held !== null && row.state === 'held' ? 'held' : 'ready';
    writeIf(context, row, ({ sinks }) => (isNew(row) ? sinks.changeView(row, wanted) : sinks.release(row.id)));
    return 'changed';
  }
  const isJudged = heldView !== null && isSameView(heldView, wanted);
  if (isJudged && !heldView.isApproved) {
    // It was disabled and resumed meanwhile.
    if (row.state === 'running') writeIf(context, row, ({ sinks }) => sinks.hold(row.id, heldView));
    return 'held';
  }
  const text = { where: wanted.where, fields: wanted.fields };
  // Only products show whether it names a member wrongly. Before the first change there is nothing to deliver.
  if (!isJudged && !isFed(row) && store.changes.lastSeq() === 0) return 'empty';
  // Another view does not decide about a run that comes next; of a store that does not keep its position, it may send that, too.
  if (row.state === 'held' && heldView === null) return 'held';
  if (!isJudged && row.state === 'held') writeIf(context, row, ({ sinks }) => sinks.release(row.id));
  if (!isJudged && isFed(row) && (await createExit(context).holdIfTooMuchLeaves(context.row()))) return 'held';
  if (!isJudged && (await holdIfTooMuch(context, row, text))) return 'held';
  writeIf(context, row, ({ sinks }) => sinks.changeView(row, text));
  if (!isNew(row))
    log.info({ sink: config.name, cursor: row.cursor }, 'the view was changed; the store gets what differs');
  return 'changed';
}
