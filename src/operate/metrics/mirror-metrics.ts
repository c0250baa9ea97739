import { statSync } from 'node:fs';
import type { Clock } from '@catchword/base/clock';
import { CHANGE_OPS, type ChangeOp } from '@catchword/catalog/run-types';
import type { Meter } from '@opentelemetry/api';
import { REASON_KINDS, reasonKind } from '../../report/reason-text.ts';
import { sinkLag } from '../../report/sink-report.ts';
import { FRESHNESS, type MirrorState } from '../../state/mirror-state.ts';
import { problemsOf, TOPICS } from '../../state/problems.ts';
import { remaining } from '../../store/rows/sink-rows.ts';
import type { Store } from '../../store/store.ts';
import { KINDS } from '../schedule/due.ts';

export interface MirrorMetricsOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** How the mirror is now. */
  readonly state: () => MirrorState;
}

/** How many of the newest runs are looked at. */
const RUNS = 50;

/** Held removals may be many, so they are counted again only after this time; milliseconds. */
const HELD_COUNT_AGE_MS = 60_000;

function fileBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function createHeldCount({ store, clock }: Pick<MirrorMetricsOptions, 'store' | 'clock'>) {
  let counted = { runs: '', at: Number.NEGATIVE_INFINITY, removals: 0 };
  return (ids: readonly number[]): number => {
    const runs = ids.join();
    const now = clock.now();
    if (runs !== counted.runs || Math.abs(now - counted.at) > HELD_COUNT_AGE_MS) {
      const removals = ids.reduce((sum, id) => sum + store.removals.heldCount(id), 0);
      counted = { runs, at: now, removals };
    }
    return counted.removals;
  };
}

function createInstruments(meter: Meter) {
  const gauge = (name: string, description: string) =>
    meter.createObservableGauge(`catchword_${name}`, { description });
  const counter = (name: string, description: string) =>
    meter.createObservableCounter(`catchword_${name}_total`, { description });
  return {
    products: gauge('products', 'Products in the mirror, without those that were removed.'),
    lastSeq: gauge('change_log_last_seq', 'Number of the newest change in the change log.'),
    age: gauge('mirror_age_seconds', 'Time since the mirror was last complete; absent while it is empty or not known.'),
    freshness: gauge('mirror_freshness', '1 for the state that the mirror is in: empty, fresh, stale or clock.'),
    problems: gauge('problems', 'How many things of this topic are wrong; docs/notifications.md lists the topics.'),
    fileBytes: gauge('mirror_file_bytes', "Size of the mirror's file, without its WAL."),
    walBytes: gauge('mirror_wal_bytes', "Size of the mirror's write-ahead log."),
    diskFree: gauge('mirror_disk_free_bytes', "Space that this user may use on the mirror's disk."),
    diskSize: gauge('mirror_disk_size_bytes', "Size of the mirror's disk."),
    runActive: gauge('run_active', '1 while a run of this kind is unfinished, otherwise 0.'),
    runPages: gauge('run_pages', 'Pages that the unfinished run has applied; 0 without one.'),
    lastComplete: gauge(
      'last_complete_run_timestamp_seconds',
      'When the newest complete run of this kind ended, in seconds since 1970.',
    ),
    failed: gauge('runs_failed_in_a_row', 'How many of the newest runs in a row have failed.'),
    open: gauge(
      'full_runs_open_in_a_row',
      'How many of the newest full runs in a row have not been sealed; failed ones do not count.',
    ),
    openReason: gauge(
      'full_run_open_reason',
      '1 for each kind of reason why the newest full run is not sealed, otherwise 0.',
    ),
    held: gauge('removals_held', 'Removals that wait for an approval; counted once a minute.'),
    paused: gauge('source_pause_seconds', 'How long the service has asked all processes to wait; 0 if it has not.'),
    sinkState: gauge('sink_state', '1 for the state that the sink is in.'),
    sinkLagRecords: gauge('sink_lag_records', 'Changes that the sink has not confirmed.'),
    sinkLagSeconds: gauge('sink_lag_seconds', 'How long the oldest change has waited that the sink has not confirmed.'),
    sinkParked: gauge('sink_parked_events', 'Events that the sink has refused, and those that wait for them.'),
    differing: gauge('sink_verify_differences', "Products of the sink's store that differ, by the last comparison."),
    verified: gauge('sink_verify_timestamp_seconds', "When the sink's store was last compared, in seconds since 1970."),
    delivered: counter('sink_delivered_events', 'Events that the sink has confirmed.'),
    viewFailures: counter(
      'sink_view_failures',
      "Products that an expression of the sink's view failed on, since it has this view.",
    ),
    pages: counter('pages', 'Pages that all runs of the mirror have applied.'),
    changes: counter('changes', 'Changes that all runs of the mirror have found, by op.'),
    rejected: counter('rejected_items', 'Items of pages that all runs of the mirror have rejected.'),
  };
}

/** Observes the mirror's state at each scrape, in one snapshot. */
export function observeMirror(meter: Meter, { store, clock, state }: MirrorMetricsOptions): void {
  const metrics = createInstruments(meter);
  const heldCount = createHeldCount({ store, clock });

  meter.addBatchObservableCallback((result) => {
    store.read(() => {
      const active = store.runs.unfinished();
      const now = state();
      const problems = problemsOf(now);
      result.observe(metrics.products, store.products.living());
      result.observe(metrics.lastSeq, store.changes.lastSeq());
      if (now.ageMs !== null) result.observe(metrics.age, now.ageMs / 1000);
      for (const freshness of FRESHNESS) {
        result.observe(metrics.freshness, now.freshness === freshness ? 1 : 0, { state: freshness });
      }
      for (const topic of TOPICS) {
        const found = problems.filter((problem) => problem.begins && problem.topic === topic);
        result.observe(metrics.problems, found.length, { topic });
      }
      for (const kind of KINDS) {
        result.observe(metrics.runActive, active?.kind === kind ? 1 : 0, { kind });
        const last = store.recentRuns.read(kind, RUNS).find(({ state }) => state === 'complete');
        if (last !== undefined) result.observe(metrics.lastComplete, (last.finishedAt ?? 0) / 1000, { kind });
      }
      result.observe(metrics.runPages, active?.pages ?? 0);
      result.observe(metrics.failed, now.failed);
      result.observe(metrics.open, now.open);
      const kinds = now.full?.reasons.map(reasonKind) ?? [];
      for (const reason of REASON_KINDS) result.observe(metrics.openReason, kinds.includes(reason) ? 1 : 0, { reason });
      const totals = store.runs.totals();
      const total = (count: ChangeOp | 'pages' | 'rejected'): number => totals[count] + (active?.[count] ?? 0);
      result.observe(metrics.pages, total('pages'));
      result.observe(metrics.rejected, total('rejected'));
      for (const op of CHANGE_OPS) result.observe(metrics.changes, total(op), { op });
      result.observe(metrics.held, heldCount(now.held));
      result.observe(metrics.paused, Math.max(0, (now.pause?.until ?? now.nowMs) - now.nowMs) / 1000);
      for (const one of now.sinks) {
        const { row, lagRecords, lagSeconds } = one;
        const sink = row.name;
        result.observe(metrics.sinkState, 1, { sink, state: sinkLag(one).state });
        result.observe(metrics.sinkLagRecords, lagRecords, { sink });
        if (lagSeconds !== null) result.observe(metrics.sinkLagSeconds, lagSeconds, { sink });
        result.observe(metrics.sinkParked, store.sinks.parkedCount(row.id), { sink });
        const check = row.checked;
        if (check?.error === null) result.observe(metrics.differing, remaining(check), { sink });
        if (check !== null) result.observe(metrics.verified, check.at / 1000, { sink });
        result.observe(metrics.delivered, row.delivered, { sink });
        result.observe(metrics.viewFailures, row.viewFailures, { sink });
      }
      result.observe(metrics.diskFree, now.disk.free);
      result.observe(metrics.diskSize, now.disk.size);
    });
    result.observe(metrics.fileBytes, fileBytes(store.path));
    result.observe(metrics.walBytes, fileBytes(`${store.path}-wal`));
  }, Object.values(metrics));
}
