import Database from 'better-sqlite3';
import type { Run } from '../../src/catalog/run.ts';
import { createHistory } from '../../src/store/history.ts';
import { keepStatements } from '../../src/store/statements.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import type { SimulatedCatalog } from './catalog.ts';
import { bodyOf, type SimulatedRequest } from './source.ts';

/** An invariant does not hold: the simulation has found a defect. */
export class Violation extends Error {}

interface Copy {
  readonly body: string;
  readonly version: number;
}

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
}

function versionOf(body: string): number {
  return (JSON.parse(body) as { version: number }).version;
}

function fail(message: string): never {
  throw new Violation(message);
}

/** Observes the mirror's file from outside and the source from inside. */
export function createObserver(options: ObserverOptions) {
  const { db, catalog, now, withdrawnAs, latenessMs, flickers, momentOf } = options;
  const store = openStore(db);
  const history = createHistory(store);
  const sqlite = new Database(db, { readonly: true });
  keepStatements(sqlite);
  const watermarkNow = sqlite.prepare<[], number | null>('SELECT watermark FROM mirror').pluck();
  const mirrored = sqlite.prepare<[], [string, string]>('SELECT vbid, body FROM catalog').raw();
  const unfinished = sqlite.prepare<[], { id: number; told: number }>(
    `SELECT runs.id, (SELECT coalesce(sum(created + updated + removed + restored), 0) FROM checkpoints
       WHERE run_id = runs.id) AS told FROM runs WHERE finished_at IS NULL`,
  );
  const replica = new Map<string, Copy>();
  const newest = new Map<string, number>();
  const tally = new Map<number, number>();
  let seq = 0;
  let watermark = 0;
  let falseRemovals = 0;
  /** Products that the previous full run did not see. */
  let missingBefore = 0;
  /** When the watermark was first set: later changes must reach the mirror by deltas alone. */
  let firstWatermarkAt = Number.POSITIVE_INFINITY;
  const removedNow: { vbid: string; at: number; run: number }[] = [];

  function apply(): void {
    for (;;) {
      const changes = history.after(seq, 1000);
      if (changes.length === 0) return;
      for (const { seq: at, op, vbid, body, runId } of changes) {
        if (at !== seq + 1) fail(`record ${at} follows record ${seq}`);
        seq = at;
        tally.set(runId, (tally.get(runId) ?? 0) + 1);
        const was = replica.get(vbid);
        if ((was === undefined) !== (op === 'created' || op === 'restored'))
          fail(`${op} of ${vbid}, which was ${was?.body}`);
        if (body === null) {
          replica.delete(vbid);
          removedNow.push({ vbid, at: now(), run: runId });
          continue;
        }
        const version = versionOf(body);
        if (was?.body === body) fail(`a record of ${vbid} without a change`);
        if (!flickers && version < (newest.get(vbid) ?? 0))
          fail(`${vbid} went back from ${newest.get(vbid)} to ${version}`);
        newest.set(vbid, version);
        replica.set(vbid, { body, version });
      }
    }
  }

  function step(): void {
    apply();
    const at = watermarkNow.get() ?? 0;
    if (at < watermark) fail(`the watermark went back from ${watermark} to ${at}`);
    if (watermark === 0 && at > 0) firstWatermarkAt = now() + latenessMs;
    watermark = at;
    const run = unfinished.get();
    if (run === undefined) return;
    if (run.told !== (tally.get(run.id) ?? 0)) {
      fail(`run ${run.id} counts ${run.told} changes, the log ${tally.get(run.id)}`);
    }
  }

  function compareMirror(): void {
    for (const [vbid, body] of mirrored.all()) {
      if (replica.get(vbid)?.body !== body) fail(`${vbid} differs between log and mirror`);
    }
    if (store.products.living() !== replica.size) fail(`${store.products.living()} living, ${replica.size} by the log`);
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
      compareMirror();
      const removed = removedNow.filter((one) => one.run === run.id);
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
      if (sealed && wronglyRemoved[0]) fail(`sealed run ${run.id} removed ${wronglyRemoved[0].vbid}, which lives`);
      // No run can detect that a list is wrongly empty, but it must not remove products because of it.
      if (sealed && !outage) {
        for (const product of unmodifiedSince(started)) {
          const copy = replica.get(`P${product.id}`);
          if (copy?.body !== bodyOf(product)) fail(`sealed run ${run.id} missed P${product.id} ${copy?.body}`);
        }
      }
      // A run that moved the watermark has read every change since the previous one, whatever the clocks did.
      if (run.sourceTime === null || store.clockSeen()?.source !== run.sourceTime) return;
      const upTo = momentOf === null ? started : Math.min(started, momentOf(run.sourceTime));
      for (const product of unmodifiedSince(upTo)) {
        if (product.since < firstWatermarkAt) continue;
        const copy = replica.get(`P${product.id}`);
        if (copy?.body !== bodyOf(product)) {
          fail(`run ${run.id} moved the watermark past a change of P${product.id} (${copy?.body})`);
        }
      }
    },
    /** Checks that the mirror equals the source. */
    expectEqual: (): void => {
      step();
      compareMirror();
      for (const product of catalog.living.values()) {
        const copy = replica.get(`P${product.id}`);
        if (copy?.body !== bodyOf(product)) fail(`in the end P${product.id} differs: ${copy?.body}`);
      }
      for (const [vbid] of replica) {
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
