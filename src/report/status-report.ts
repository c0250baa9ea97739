import { iso } from '@catchword/base/iso-time';
import { covers, type RunKind } from '@catchword/catalog/run-types';
import type { MissedTicks, Plans } from '@catchword/catalog/tick';
import { OF_RELAY, OF_SINKS } from '@catchword/settings/config';
import type { Holder } from '../store/schema/lease.ts';
import { otherSettings, type SettingDigests } from '../store/schema/started-settings.ts';
import type { Store } from '../store/store.ts';

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

/** A process that works on the mirror, or for it. */
export interface ProcessSeen extends Pick<Holder, 'pid' | 'host'> {
  /** Null: not known. */
  readonly since: number | null;
  /** Settings that it was not started with as they are now. */
  readonly other_settings: readonly string[];
  /** What it does, where all of it is looked up. */
  readonly roles: readonly string[];
}

/** @param own the settings of the command that asks */
export function seenHolder(holder: Holder | null, own?: SettingDigests): ProcessSeen | null {
  if (holder === null) return null;
  const { pid, host, since = null } = holder;
  return { pid, host, since, other_settings: otherSettings(holder, own), roles: [] };
}

export interface Servers {
  readonly daemon: ProcessSeen | null;
  /** The process that delivers to the sinks. */
  readonly relay: ProcessSeen | null;
}

function isOneProcess({ daemon, relay }: Servers): boolean {
  return daemon?.pid === relay?.pid && daemon?.host === relay?.host;
}

/**
 * The daemon, and the process that delivers to the sinks, with the settings of each that are not in use. In a daemon both
 * are one process; apart, only the second one needs the settings of sinks.
 */
export function serversOf({ daemonLease, relayLease }: Store, nowMs: number, own?: SettingDigests): Servers {
  const daemon = seenHolder(daemonLease.holder(nowMs), own);
  const relay = seenHolder(relayLease.holder(nowMs), own);
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
