import { setImmediate as otherWork } from 'node:timers/promises';
import type { RecordedChange } from '@catchword/catalog/event';
import { isWithdrawnBody } from '@catchword/catalog/field-values';
import { holdOf } from '@catchword/catalog/reasons';
import type { ChangeFilter } from '@catchword/catalog/run-types';
import { createHistory } from '../store/history/history.ts';
import { legOf } from '../store/rows/sink-legs.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { HeldSink, SinkLeg } from '../store/schema/sink-tables.ts';
import { viewedLog } from '../view/viewed-change.ts';
import type { FeedContext } from './feed-context.ts';
import { legsSinceFill } from './store-contents.ts';
import { forecastView } from './view-forecast.ts';

/*
 * What may leave a store without a decision? Whatever takes products away from it is counted against what the store has,
 * before the first of them leaves, and more than CATCHWORD_REMOVAL_LIMIT allows waits for a person:
 *
 *   a run removes products, or changes them so that they leave the view, or    counted here, for each run with the runs of
 *   so that an expression of the view fails on them                            the 24 hours before, which an approval ends
 *   a changed view                                                             counted by settle-view.ts
 *   the end of a fill removes what the store should not have (a fill itself    counted by reconcile.ts
 *   delivers no removals to a store that can list), and so does a repair
 *
 * A run and a view are counted against what the mirror reckons that the store has, the others against what the store lists.
 * All ask `tooMany`. docs/held.md has the same as a table. A run goes on writing while its changes are delivered. So some may
 * leave before it exceeds the limit: never more than the limit. Removals that the source announced, or an operator approved,
 * are not counted: the run has asked about them.
 */

/** Changes that are judged before others get their turn. */
const STEP = 250;
const DAY_MS = 86_400_000;

/** How many products leave a store, of how many, and how many may. */
export interface Leaving {
  readonly removed: number;
  readonly has: number;
  readonly limit: number;
}

/** @returns null if so many may leave */
export function tooMany({ removalLimit }: Pick<FeedContext, 'removalLimit'>, removed: number, has: number) {
  const limit = removalLimit(has);
  return removed > limit ? { removed, has, limit } : null;
}

export function leavingText({ removed, has, limit }: Leaving): string {
  const [out, all, most] = [removed, has, limit].map((products) => products.toLocaleString('en'));
  return `would remove ${out} of ${all} products; CATCHWORD_REMOVAL_LIMIT allows ${most}`;
}

/** Writes unless delivery has restarted, or moved, meanwhile. */
export function writeIf(
  { leased, row }: FeedContext,
  { generation, cursor }: SinkRow,
  work: Parameters<FeedContext['leased']['write']>[0],
): void {
  leased.write((writer) => {
    const now = row();
    if (now.generation === generation && now.cursor === cursor) work(writer);
  });
}

/** Sends nothing more until an operator decides. @param reason for the log */
export function holdSink(context: FeedContext, sink: SinkRow, held: HeldSink, reason: string): void {
  const { acks, config, log } = context;
  acks.flush();
  writeIf(context, sink, ({ sinks }) => sinks.hold(sink.id, held));
  log.error({ code: 'SINK_HELD', sink: config.name, reason }, 'sink is held; see npx catchword sink list');
}

/**
 * Holds a sink before the end of its fill takes too much away. An approval allows as many as were counted then.
 * @param removed how many products, of those that the store `has`
 * @returns whether it is held
 */
export function holdFillEnd(context: FeedContext, row: SinkRow, removed: number, has: number): boolean {
  const { held } = row;
  const found = tooMany(context, removed, has);
  if (found === null || (held?.why === 'fill' && held.isApproved && removed <= held.removed)) return false;
  const reason = `the end of its fill ${leavingText(found)}`;
  holdSink(context, row, { why: 'fill', removed, reason, isApproved: false }, reason);
  return true;
}

/** What a run takes away from the store. */
interface RunLoss {
  /** Products that leave and do not come back in this run. */
  readonly gone: Set<string>;
  /** Products that an earlier run took away, and this one brings back. */
  readonly back: Set<string>;
  /** The last change that takes something away, and its time, milliseconds since 1970. */
  last: number;
  at: number;
  /** Null until it is needed: counting what the store has reads every product. */
  has: number | null;
}

/** How many products a run, with the runs of the day before it that come after `floor`, takes away. */
function goneBy(losses: ReadonlyMap<number, RunLoss>, run: number, { at }: RunLoss, floor: number): number {
  const gone = new Set<string>();
  for (const [earlier, loss] of losses) {
    if (earlier <= floor || earlier > run || (earlier < run && loss.at < at - DAY_MS)) continue;
    for (const vbid of loss.back) gone.delete(vbid);
    for (const vbid of loss.gone) gone.add(vbid);
  }
  return gone.size;
}

/** Tells whether a person, or the source before it, has decided that a product goes. */
function createDecided({ runs }: FeedContext['store']) {
  const approved = new Map<number, boolean>();
  return ({ op, before, runId }: RecordedChange): boolean => {
    if (op !== 'removed') return false;
    const run = approved.has(runId) ? undefined : runs.get(runId);
    if (run !== undefined) approved.set(runId, holdOf(run)?.verdict === 'approved');
    return approved.get(runId) === true || isWithdrawnBody(before ?? '{}');
  };
}

/** How each of these views shows the changes after `from`, and which changes may take something away or bring it back. */
function judgesOf({ store, prepare }: FeedContext, legs: readonly SinkLeg[], from: number) {
  const prunedTo = store.changes.prunedTo();
  const viewed = legs.map((leg) => (leg.tag === null ? null : viewedLog(prepare(leg), leg.tag, from, prunedTo)));
  const read = viewed.flatMap((one) => (one === null ? [] : [one.keys]));
  const keys = read.includes(null) ? null : new Set(read.flatMap((names) => [...(names ?? [])]));
  // A creation takes nothing away. Each opening would evaluate the view for every product of a first load of that day.
  const filter: ChangeFilter =
    read.length === 0 ? { op: ['removed', 'restored'] } : { op: ['updated', 'removed', 'restored'], keys };
  return { viewed, filter };
}

/** How many products the store of a sink has by its view. */
async function productsOf({ store, prepare, stopping }: FeedContext, sink: SinkRow): Promise<number> {
  return (await forecastView(store, sink, prepare, prepare(legOf(sink)), sink.cursor, stopping)).has;
}

/** Judges the changes that a sink gets next. Each session has its own, which first looks back at what was delivered. */
export function createExit(context: FeedContext) {
  const { store, config, prepare, removalLimit, stopping, noteViewFailures } = context;
  const history = createHistory(store);
  const losses = new Map<number, RunLoss>();
  let judgedTo: number | null = null;

  function lossOf({ runId, seq: last, at }: RecordedChange): RunLoss {
    const loss = losses.get(runId) ?? { gone: new Set(), back: new Set(), last, at, has: null };
    losses.set(runId, loss);
    return loss;
  }

  function noteBack(change: RecordedChange): void {
    const { vbid } = change;
    losses.get(change.runId)?.gone.delete(vbid);
    if ([...losses.values()].some(({ gone }) => gone.has(vbid))) lossOf(change).back.add(vbid);
  }

  /**
   * Counts what the changes after `from`, up to `upTo`, take away.
   * @param legs the leg on whose view the store got them, and later ones. A later view brings back what it shows, and never
   *   had what it did not show, so a change counts only if the product leaves each of them.
   */
  async function judge(legs: readonly SinkLeg[], from: number, upTo: number): Promise<void> {
    const { viewed, filter } = judgesOf(context, legs, from);
    const isDecided = createDecided(store);
    for (let at = from; at < upTo; ) {
      const { changes, to } = history.matching(at, STEP, filter);
      for (const change of changes.filter(({ seq }) => seq <= upTo)) {
        const seen = viewed.map((one) => (one === null ? change : one.of(change)));
        // Of what the log no longer holds it is not known whether the store had it.
        const leaves = seen.every((one, index) => one?.op === 'removed' && (!viewed[index] || one.before !== null));
        if (seen.some((one) => one !== null && one.op !== 'removed')) noteBack(change);
        else if (leaves && !isDecided(change)) {
          Object.assign(lossOf(change), { last: change.seq, at: change.at }).gone.add(change.vbid);
        }
      }
      at = Math.min(to, upTo);
      judgedTo = at;
      await otherWork();
      stopping.throwIfAborted();
    }
  }

  /**
   * All of the run that comes next counts, and the day before it, however much was delivered before the sink was opened, and
   * also under an earlier view.
   */
  function countedFrom({ cursor }: SinkRow, filledTo: number): number {
    const { changes } = store;
    const dayBefore = changes.seqAt((changes.atFrom(cursor + 1) ?? 0) - DAY_MS);
    const counted = Math.min(changes.beforeNext({ seq: cursor }), dayBefore);
    return Math.min(cursor, Math.max(changes.prunedTo(), filledTo, counted));
  }

  /** Holds the sink if a run, with those of the day before it, takes too much away, or more than was approved. */
  async function holdIfTooMany(sink: SinkRow, failures: string): Promise<boolean> {
    const { approvedRemovals, cursor } = sink;
    const allowed = new Map(approvedRemovals.map(({ run, removed }) => [run, removed]));
    // An approval decides about what was counted; after its run, the count starts again. One of an unusual run has not asked.
    const floorOf = (run: number) => Math.max(0, ...[...allowed.keys()].filter((one) => one < run));
    const all = [...losses];
    const [next = Number.MAX_SAFE_INTEGER, { at } = { at: 0 }] = all.find(([, { last }]) => last > cursor) ?? [];
    const since = (at || (all.at(-1)?.[1].at ?? 0)) - DAY_MS;
    const unfinished = store.runs.unfinished()?.id;
    for (const [run, loss] of all) {
      const isPast = loss.last <= cursor;
      if (isPast && run !== unfinished && (run <= floorOf(next) || loss.at < since)) losses.delete(run);
      if (isPast) continue;
      const removed = goneBy(losses, run, loss, floorOf(run));
      if (removed <= removalLimit(0) || removed <= (allowed.get(run) ?? 0)) continue;
      loss.has ??= await productsOf(context, sink);
      const found = tooMany(context, removed, loss.has);
      if (found === null) continue;
      const others = removed > loss.gone.size ? ' and the runs of the 24 hours before' : '';
      const reason = `run ${run}, which comes next,${others} ${leavingText(found)}${failures}`;
      holdSink(context, sink, { why: 'run', run, removed, reason }, reason);
      return true;
    }
    return false;
  }

  return {
    /** The last change that was judged; null if none was. Nothing behind it may be delivered after a fill. */
    judgedTo: (): number | null => judgedTo,

    /**
     * Holds the sink if a run that comes next takes too much away. A fill, and a changed view, were judged before they began.
     * @param sink with its newest confirmed position
     * @returns whether it is held
     */
    holdIfTooMuchLeaves: async (sink: SinkRow): Promise<boolean> => {
      const { cursor } = sink;
      const { changes } = store;
      if (cursor < legOf(sink).to || (judgedTo ?? cursor) >= changes.lastSeq()) return false;
      // What the view fails on is noted when it is delivered.
      noteViewFailures();
      const failed = () => (config.view && prepare(config.view)?.failures()) ?? { count: 0, last: null };
      const { count: failedBefore } = failed();
      const legs = legsSinceFill(sink);
      const from = judgedTo ?? countedFrom(sink, legs[0]?.after ?? 0);
      const end = changes.lastSeq();
      for (const [index, { after }] of legs.entries()) {
        const upTo = legs[index + 1]?.after ?? end;
        const shown = legs.slice(index).map(({ leg }) => leg);
        if (from < upTo) await judge(shown, Math.max(from, after), upTo);
      }
      // A store that was emptied gets again what its last fill held, which is not counted.
      judgedTo = Math.max(judgedTo ?? 0, end);
      // Of these changes: to count what the store has evaluates the view for every product.
      const { count, last } = failed();
      const failures = count === failedBefore ? '' : `. An expression of its view fails on ${last}`;
      const isHeld = await holdIfTooMany(sink, failures);
      noteViewFailures(false);
      return isHeld;
    },
  };
}
