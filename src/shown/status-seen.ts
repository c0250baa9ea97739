import type { Plans } from '@catchword/catalog/tick';
import type { SinkConfig } from '../relay/sink-config.ts';
import { heldRuns } from '../report/run-report.ts';
import { seenSinks } from '../report/sink-report.ts';
import { missedRuns, seenHolder, serversOf } from '../report/status-report.ts';
import { type MirrorState, openRun } from '../state/mirror-state.ts';
import type { SettingDigests } from '../store/schema/started-settings.ts';
import type { Store } from '../store/store.ts';
import { type ConfiguredChannel, seenChannels } from './shown-channel.ts';
import { seenProblems } from './shown-problem.ts';

/** What only some processes know. */
interface Known {
  readonly sinks?: readonly SinkConfig[];
  readonly channels: readonly ConfiguredChannel[];
  /** The settings of the command that asks. */
  readonly own?: SettingDigests;
}

/** Looks at the state of the mirror, and at the things that it names. */
export function seenStatus(store: Store, state: MirrorState, plans: Plans, { sinks = [], channels, own }: Known) {
  const { nowMs, full } = state;
  const [last] = store.runs.list(1);
  const learned = store.source.learnedRate();
  return {
    store,
    state,
    plans,
    last,
    servers: serversOf(store, nowMs, own),
    running: seenHolder(store.keeperLease.holder(nowMs)),
    products: store.products.living(),
    /** The source's own total. */
    total: full?.evidence?.numItems ?? null,
    /** Requests a minute that were learned. */
    limit: learned === null ? null : Math.floor(learned.perMinute),
    pageSize: store.source.learnedPage(nowMs)?.perPage ?? null,
    open: openRun(state),
    held: heldRuns(store, store.runs.held()),
    missed: missedRuns(store, plans, nowMs),
    sinks: seenSinks(store, nowMs, sinks),
    problems: seenProblems(store, state),
    channels: seenChannels(store, channels),
  };
}

export interface StatusSeen extends Readonly<ReturnType<typeof seenStatus>> {}
