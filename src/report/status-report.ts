import { iso } from '../base/iso-time.ts';
import { covers, type RunKind } from '../catalog/run-types.ts';
import type { MissedTicks, Plans } from '../catalog/tick.ts';
import { OF_RELAY, OF_SINKS } from '../settings/config.ts';
import { type MirrorState, openRun } from '../state/mirror-state.ts';
import { nameOf, problemsOf, quietMs } from '../state/problems.ts';
import type { Holder } from '../store/schema/lease.ts';
import type { Reader } from '../store/schema/reader.ts';
import { otherSettings, type SettingDigests } from '../store/schema/started-settings.ts';
import type { Store } from '../store/store.ts';
import { heldRuns, runJson } from './run-report.ts';
import { localIso } from './text.ts';

const DAY_MS = 86_400_000;

/**
 * Says why no run made up for scheduled runs that were missed, as far as the mirror knows it; null if it does not.
 * @param missed the kind of run
 */
function whyNotMade(store: Store, missed: RunKind, nowMs: number): string | null {
  const running = store.keeperLease.holder(nowMs);
  const run = store.runs.unfinished();
  if (running !== null) {
    const what = run === undefined ? 'works on the mirror' : `makes ${run.kind} run ${run.id}`;
    return `process ${running.pid} on ${running.host} ${what}`;
  }
  if (store.daemonLease.holder(nowMs) === null) return 'no daemon is running';
  const retry = store.schedule.retry();
  if (retry !== null && covers(retry.kind, missed)) return `a ${retry.kind} run failed and is tried again`;
  return run === undefined ? null : `${run.kind} run ${run.id} is unfinished and is resumed first`;
}

/** Scheduled times since the newest one that was served, and why no run made up for them; null if there are none. */
function missedJson(store: Store, kind: RunKind, missed: MissedTicks | null, nowMs: number) {
  if (missed === null) return null;
  const { ticks, from, upTo } = missed;
  return { ticks, from: iso(from), up_to: iso(upTo), reason: whyNotMade(store, kind, nowMs) };
}

export function missedRuns(store: Store, { missedFull, missedDelta }: Plans, nowMs: number) {
  return {
    missed_full: missedJson(store, 'full', missedFull, nowMs),
    missed_delta: missedJson(store, 'delta', missedDelta, nowMs),
  };
}

export type Missed = ReturnType<typeof missedRuns>;

/** @param own the settings of the command that asks */
function holderJson(holder: Holder | null, own?: SettingDigests) {
  return holder && { pid: holder.pid, host: holder.host, other_settings: otherSettings(holder, own) };
}

interface Servers {
  readonly daemon: ReturnType<typeof holderJson>;
  /** The process that delivers to the sinks. */
  readonly relay: ReturnType<typeof holderJson>;
}

function isOneProcess({ daemon, relay }: Servers): boolean {
  return daemon?.pid === relay?.pid && daemon?.host === relay?.host;
}

/**
 * The daemon, and the process that delivers to the sinks, with the settings of each that are not in use. In a daemon both
 * are one process; apart, only the second one needs the settings of sinks.
 */
export function serversOf({ daemonLease, relayLease }: Store, nowMs: number, own?: SettingDigests): Servers {
  const daemon = holderJson(daemonLease.holder(nowMs), own);
  const relay = holderJson(relayLease.holder(nowMs), own);
  const only = (server: typeof daemon, form: RegExp, isRead = true) =>
    server && { ...server, other_settings: server.other_settings.filter((name) => form.test(name) === isRead) };
  if (relay === null || isOneProcess({ daemon, relay })) return { daemon, relay };
  return { daemon: only(daemon, OF_SINKS, false), relay: only(relay, OF_RELAY) };
}

/** Says which settings are not in use, in a sentence for each process. */
export function otherSettingsTexts({ daemon, relay }: Servers): string[] {
  return Object.entries(isOneProcess({ daemon, relay }) ? { daemon } : { daemon, relay }).flatMap(([role, server]) => {
    if (server === null || server.other_settings.length === 0) return [];
    const { pid, host, other_settings: names } = server;
    return `the ${role} (process ${pid} on ${host}) was started with other settings: ${names.join(', ')}. Restart it, so that these count`;
  });
}

/**
 * The state of the mirror for `catchword status --json` and `/api/status`. http/answers.ts describes each member.
 * @param own the settings of the command that asks
 */
export function statusOf(store: Store, state: MirrorState, plans: Plans, own?: SettingDigests) {
  const { nowMs, ageMs, full, restless, pause, retry } = state;
  const { nextFull, nextDelta, timezone } = plans;
  const [last] = store.runs.list(1);
  const { daemon, relay } = serversOf(store, nowMs, own);
  const learned = store.source.learnedRate();
  const open = openRun(state);
  // Nothing starts a run if no daemon is alive.
  const planned = (ms: number | null) => (daemon === null ? null : ms);
  const localOrNull = (ms: number | null) => (ms === null ? null : localIso(ms, timezone));
  return {
    mirror: store.path,
    incarnation: store.incarnation,
    bytes: store.sizeBytes(),
    products: store.products.living(),
    last_seq: store.changes.lastSeq(),
    watermark: iso(store.watermark()),
    freshness: state.freshness,
    age_seconds: ageMs === null ? null : Math.round(ageMs / 1000),
    problems: problemsOf(state).flatMap((problem) => (problem.begins ? [nameOf(problem)] : [])),
    blocked_until: iso(pause?.until ?? null),
    learned_limit: learned === null ? null : Math.floor(learned.perMinute),
    learned_page_size: store.source.learnedPage(nowMs)?.perPage ?? null,
    running: holderJson(store.keeperLease.holder(nowMs)),
    daemon,
    relay,
    held: state.held,
    held_runs: heldRuns(store, store.runs.held()),
    last_run: last === undefined ? null : runJson(last),
    open_run: open && { run: open.id, reasons: open.reasons, rejected: open.rejected, missing: open.missing },
    source_total: full?.evidence?.numItems ?? null,
    restless_run: restless ? { run: restless.id, updated: restless.updated, field: restless.field } : null,
    next_full: iso(planned(nextFull)),
    next_delta: iso(planned(nextDelta)),
    next_full_local: localOrNull(planned(nextFull)),
    next_delta_local: localOrNull(planned(nextDelta)),
    timezone,
    ...missedRuns(store, plans, nowMs),
    next_try: iso(planned(retry?.at ?? null)),
    retry_reason: retry?.reason ?? null,
  };
}

/** Problems that are open, as `status --json` prints it. One that is gone is watched for a while before it is over. */
export function episodesJson({ episodes, sinks }: Reader, state: MirrorState) {
  const found = new Set(problemsOf(state).map(nameOf));
  return episodes.open().map(({ topic, message, beganAt }) => {
    const isGone = !found.has(topic);
    const [, name = ''] = /^differs:(.*)/.exec(topic) ?? [];
    // When other problems have ended is not noted.
    const goneAt = (isGone && sinks.get(name)?.checked?.at) || null;
    const until = goneAt && goneAt + quietMs(episodes.countSince(topic, state.nowMs - DAY_MS));
    return {
      topic,
      message: message.replace('\n', ' '),
      began_at: iso(beganAt),
      gone: isGone,
      watched_until: iso(until),
    };
  });
}

/** The configured channels that notifications go to, and what each has got, as `status --json` prints them. */
export function channelStatuses(
  { episodes }: Reader,
  configured: readonly { readonly name: string; readonly kind: string; readonly address: string }[],
) {
  const known = episodes.channels();
  return configured.map(({ name, kind, address }) => {
    const state = known.find(({ channel }) => channel === name);
    return {
      name,
      kind,
      address,
      delivered_at: iso(state?.deliveredAt ?? null),
      waiting: state?.waiting ?? 0,
      given_up: state?.givenUp ?? 0,
      error: state?.error ?? null,
      next_try_at: iso(state?.nextTryAt ?? null),
    };
  });
}
