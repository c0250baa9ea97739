import type { RecordedChange } from '@catchword/catalog/event';
import type { Run } from '@catchword/catalog/run-types';
import Database from 'better-sqlite3';
import { createHistory } from '../../src/store/history/history.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import type { Shown, SimulatedCatalog } from './catalog.ts';
import { bodyOf, type Dress, type SimulatedPage, type SimulatedRequest } from './source.ts';

/** An invariant does not hold: the simulation has found a defect. */
export class Violation extends Error {}

export type Observer = ReturnType<typeof createObserver>;

export interface ObserverOptions {
  readonly db: string;
  readonly catalog: SimulatedCatalog;
  readonly now: () => number;
  readonly withdrawnAs: 'updated' | 'removed';
  /** How late the source may show a change. The next delta brings changes newer than this. */
  readonly latenessMs: number;
  /** Whether the source may show an old version of a product after a newer one. */
  readonly flickers: boolean;
  /** Converts a run's source time to the world's clock; null if that is the run's start. */
  readonly momentOf: ((sourceTime: number) => number) | null;
  /** Whether a sealed run that began then, by the world's clock, and ends now may be wrong. */
  readonly maybeUnsound: (started: number) => boolean;
  readonly dress: Dress;
  /** The pages of lists that processes got. */
  readonly pages: readonly SimulatedPage[];
}

/** The most products that a run removes without a decision, if the source did not announce it: 1% or this. */
const REMOVAL_LIMIT = 100;

function versionOf(body: string): number {
  return (JSON.parse(body) as { version: number }).version;
}

function fail(message: string): never {
  throw new Violation(message);
}

/** A body without what the settings ignore. */
function plain(body: string): string {
  return body.replace(/,"shown":\d+/, '');
}

/** Checks that the pages of a sealed run hang together: from one at the head of the list, by common products, to its end. */
function checkJoined(run: Run, store: Store, pages: readonly SimulatedPage[]): void {
  const root = store.runs.passes(run.id).findLast(({ kind }) => kind === 'list')?.pass;
  const passes = new Set(store.runs.passes(run.id).flatMap((pass) => (pass.root === root ? [pass.pass] : [])));
  const own = pages.filter(({ task }) => task.runId === run.id && passes.has(task.pass));
  const left = own.map(({ task, text }) => {
    const { items } = JSON.parse(text) as { items: { vbid: string }[] };
    return { task, vbids: items.map(({ vbid }) => vbid), isLast: items.length < task.window.perPage };
  });
  const reached = new Set<string>();
  for (let grown = true; grown; ) {
    grown = false;
    for (const [at, page] of left.entries()) {
      if (page.task.window.page !== 1 && !page.vbids.some((vbid) => reached.has(vbid))) continue;
      if (page.isLast) return;
      for (const vbid of page.vbids) reached.add(vbid);
      left.splice(at, 1);
      grown = true;
      break;
    }
  }
  fail(`sealed run ${run.id} has pages that do not hang together`);
}

interface Removal {
  readonly vbid: string;
  readonly at: number;
  readonly run: number;
  readonly announced: boolean;
}

/** Replays the log of changes, and checks each. */
function createReplica(store: Store, { now, withdrawnAs, flickers, dress }: ObserverOptions) {
  const history = createHistory(store);
  const bodies = new Map<string, string>();
  const newest = new Map<string, number>();
  const tally = new Map<number, number>();
  const removals: Removal[] = [];
  let seq = 0;

  function take({ seq: at, op, vbid, body, runId }: RecordedChange): void {
    if (at !== seq + 1) fail(`record ${at} follows record ${seq}`);
    seq = at;
    tally.set(runId, (tally.get(runId) ?? 0) + 1);
    const was = bodies.get(vbid);
    if ((was === undefined) !== (op === 'created' || op === 'restored')) fail(`${op} of ${vbid}, which was ${was}`);
    if (body === null) {
      bodies.delete(vbid);
      const announced = withdrawnAs === 'removed' || was?.includes('"distributable":false') === true;
      removals.push({ vbid, at: now(), run: runId, announced });
      return;
    }
    const version = versionOf(body);
    if (was !== undefined && plain(was) === plain(body)) fail(`a record of ${vbid} without a change`);
    if (!flickers && version < (newest.get(vbid) ?? 0))
      fail(`${vbid} went back from ${newest.get(vbid)} to ${version}`);
    newest.set(vbid, version);
    bodies.set(vbid, body);
  }

  function isMirrored(product: Shown, { currency }: Pick<Dress, 'currency'> = dress): boolean {
    return plain(bodies.get(`P${product.id}`) ?? '') === bodyOf(product, { currency });
  }

  return {
    bodies: bodies as ReadonlyMap<string, string>,
    changesOf: (run: number): number => tally.get(run) ?? 0,
    removedBy: (run: number): Removal[] => removals.filter((one) => one.run === run),
    isMirrored,
    /** As isMirrored, in the currency that was selected when it was read. */
    isInAnyCurrency: (product: Shown): boolean => isMirrored(product) || isMirrored(product, { currency: '' }),
    apply: (): void => {
      if (store.changes.lastSeq() === seq) return;
      for (let changes = history.after(seq, 1000); changes.length > 0; changes = history.after(seq, 1000)) {
        for (const change of changes) take(change);
      }
    },
    compare: (mirrored: readonly (readonly [vbid: string, body: string])[]): void => {
      for (const [vbid, body] of mirrored) {
        if (bodies.get(vbid) !== body) fail(`${vbid} differs between log and mirror`);
      }
      const living = store.products.living();
      if (living !== bodies.size) fail(`${living} living, ${bodies.size} by the log`);
    },
  };
}

/** Observes the mirror's file from outside and the source from inside. */
export function createObserver(options: ObserverOptions) {
  const { db, catalog, now, withdrawnAs, latenessMs, momentOf, maybeUnsound, pages } = options;
  const store = openStore(db);
  const replica = createReplica(store, options);
  const sqlite = new Database(db, { readonly: true });
  const watermarkNow = sqlite.prepare<[], number | null>('SELECT watermark FROM mirror').pluck();
  const mirrored = sqlite.prepare<[], [string, string]>('SELECT vbid, body FROM catalog').raw();
  const unfinished = sqlite.prepare<[], { id: number; told: number }>(
    `SELECT runs.id, (SELECT coalesce(sum(created + updated + removed + restored), 0) FROM checkpoints
       WHERE run_id = runs.id) AS told FROM runs WHERE finished_at IS NULL`,
  );
  let watermark = 0;
  let falseRemovals = 0;
  /** Products that the previous full run did not see. */
  let missingBefore = 0;
  /** When the watermark was first set: later changes must reach the mirror by deltas alone. */
  let firstWatermarkAt = Number.POSITIVE_INFINITY;

  function step(): void {
    replica.apply();
    const at = watermarkNow.get() ?? 0;
    if (at < watermark) fail(`the watermark went back from ${watermark} to ${at}`);
    if (watermark === 0 && at > 0) firstWatermarkAt = now() + latenessMs;
    watermark = at;
    const run = unfinished.get();
    if (run === undefined) return;
    if (run.told !== replica.changesOf(run.id)) {
      fail(`run ${run.id} counts ${run.told} changes, the log ${replica.changesOf(run.id)}`);
    }
  }

  /** All products that were shown unchanged since before `time`. */
  function* unmodifiedSince(time: number) {
    for (const product of catalog.living.values()) if (product.since < time - latenessMs) yield product;
  }

  return {
    /** Checks after each transaction that the log matches the mirror. */
    step,
    /** Number of living products that runs removed. */
    get falseRemovals() {
      return falseRemovals;
    },
    /** Checks after a run that replaying the log gives the mirror, and that the run kept its promises. */
    runEnded: (run: Run, started: number, outage: boolean): void => {
      step();
      replica.compare(mirrored.all());
      const removed = replica.removedBy(run.id);
      const wronglyRemoved = removed.filter(({ vbid, at }) => {
        const product = catalog.living.get(Number(vbid.slice(1)));
        // A source may still announce a product as withdrawn after restoring it; that is believed.
        const before = withdrawnAs === 'removed' ? started - latenessMs : started;
        return product !== undefined && product.livingSince < before && at >= started;
      });
      falseRemovals += wronglyRemoved.length;
      const sealed = run.kind === 'full' && run.proof === 'sealed';
      const confirmable = missingBefore + (run.evidence?.lookups ?? 0);
      if (withdrawnAs === 'updated' && run.kind === 'full' && !sealed && run.removed > confirmable) {
        fail(`open run ${run.id} removed ${run.removed}; ${confirmable} at most were missing before or looked up`);
      }
      if (run.kind === 'full') missingBefore = run.missing;
      if (run.kind === 'delta' && withdrawnAs === 'updated' && removed[0] !== undefined) {
        fail(`delta ${run.id} removed ${removed[0].vbid}, although it proves nothing`);
      }
      if (sealed) checkJoined(run, store, pages);
      const unannounced = removed.filter(({ announced }) => !announced).length;
      if (unannounced > Math.max(REMOVAL_LIMIT, (replica.bodies.size + removed.length) / 100)) {
        fail(`run ${run.id} removed ${unannounced} products without a decision`);
      }
      const unsound = maybeUnsound(started);
      if (sealed && !unsound && wronglyRemoved[0])
        fail(`sealed run ${run.id} removed ${wronglyRemoved[0].vbid}, which lives`);
      // No run can detect that a list is wrongly empty, but it must not remove products because of it.
      if (sealed && !outage && !unsound) {
        for (const product of unmodifiedSince(started)) {
          if (replica.isMirrored(product)) continue;
          fail(`sealed run ${run.id} missed P${product.id} ${replica.bodies.get(`P${product.id}`)}`);
        }
        for (const { id, livingSince, silent } of catalog.living.values()) {
          if (livingSince >= started - latenessMs || silent || replica.bodies.has(`P${id}`)) continue;
          fail(`sealed run ${run.id} missed P${id}, which changed meanwhile`);
        }
      }
      // A run that moved the watermark has read every change since the previous one, whatever the clocks did.
      if (run.sourceTime === null || store.clockSeen()?.source !== run.sourceTime) return;
      const upTo = momentOf === null ? started : Math.min(started, momentOf(run.sourceTime));
      if (unsound) return;
      for (const product of unmodifiedSince(upTo)) {
        if (product.since < firstWatermarkAt || product.silent || replica.isInAnyCurrency(product)) continue;
        const copy = replica.bodies.get(`P${product.id}`);
        fail(`run ${run.id} moved the watermark past a change of P${product.id} (${copy})`);
      }
      for (const { id, since, silent } of catalog.withdrawn.values()) {
        if (since >= upTo - latenessMs || since < firstWatermarkAt || silent) continue;
        const copy = replica.bodies.get(`P${id}`);
        if (withdrawnAs === 'removed' && copy !== undefined) fail(`P${id} was withdrawn, and run ${run.id} kept it`);
      }
    },
    /** Checks that the mirror equals the source. */
    expectEqual: (mayKeepGone: boolean): void => {
      step();
      replica.compare(mirrored.all());
      for (const product of catalog.living.values()) {
        if (!replica.isMirrored(product)) {
          fail(`in the end P${product.id} differs: ${replica.bodies.get(`P${product.id}`)}`);
        }
      }
      if (mayKeepGone) return;
      for (const vbid of replica.bodies.keys()) {
        const id = Number(vbid.slice(1));
        if (!catalog.living.has(id) && !catalog.withdrawn.has(id)) fail(`in the end ${vbid} is only here`);
      }
    },
    close: (): void => {
      sqlite.close();
      store.close();
    },
  };
}

/** Checks that no minute has more requests than the rate limit, over all processes of the mirror. */
export function checkPace(rate: number | null, requests: readonly { readonly at: number }[]): void {
  if (rate === null) return;
  requests.forEach(({ at }, index) => {
    if ((requests[index + rate]?.at ?? Number.POSITIVE_INFINITY) - at < 60_000)
      throw new Violation('too many requests in a minute');
  });
}

/**
 * Checks that a sealed run which did not see living products removes them only after a delta requested at least the
 * overlap after the previous response.
 * @param asked the requests, by the world's clock
 * @param applied the applied windows, in the order of application
 */
export function checkSettled(
  run: Run,
  store: Store,
  { asked, applied }: { readonly asked: readonly SimulatedRequest[]; readonly applied: readonly SimulatedRequest[] },
  overlapMs: number,
): void {
  const absent = run.removed - store.runs.counts(run.id).removed + run.missing;
  if (run.kind !== 'full' || run.proof !== 'sealed' || absent <= 0) return;
  const last = store.runs.passes(run.id).at(-1);
  if (last?.kind !== 'settle') fail(`sealed run ${run.id} did not settle`);
  const own = applied.filter(({ runId }) => runId === run.id);
  // A process that has lost its lease may make requests, but the responses are not applied.
  const by = new Set(own.flatMap(({ pass, owner }) => (pass === last.pass ? [owner] : [])));
  const begun = asked.filter(({ runId, pass, owner }) => runId === run.id && pass === last.pass && by.has(owner));
  const before = own.filter(({ pass }) => pass < last.pass);
  const waitedMs = Math.min(...begun.map(({ at }) => at)) - Math.max(...before.map(({ at }) => at));
  if (waitedMs < overlapMs) fail(`sealed run ${run.id} settled after ${Math.round(waitedMs)} ms`);
}
