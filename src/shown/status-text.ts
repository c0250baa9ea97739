import { printable } from '@catchword/base/printable';
import type { Run } from '@catchword/catalog/run-types';
import { MOST_MISSED } from '@catchword/catalog/tick';
import type { SinkSeen } from '../report/sink-report.ts';
import type { Missed, Servers } from '../report/status-report.ts';
import { ago, count, duration, plural, time, timeIn } from '../report/text.ts';
import type { MirrorState } from '../state/mirror-state.ts';
import type { ChannelSeen } from './shown-channel.ts';
import type { StatusSeen } from './status-seen.ts';

export function processText({ pid, host }: { readonly pid: number; readonly host: string }): string {
  return `process ${pid} on ${host}`;
}

export function daemonText({ daemon, relay }: Servers): string {
  if (daemon !== null) return processText(daemon);
  return relay === null ? 'no daemon is running' : `no daemon is running; ${processText(relay)} delivers to the sinks`;
}

export function lastRunText({ id, kind, state, startedAt, pages }: Run): string {
  return `${id}, ${kind}, ${state}, ${time(startedAt)}, ${plural(pages, 'page')}`;
}

/** Says why the last run did not complete; null if it did, or is still running. */
export function failureText(
  { finishedAt, state, error }: Run,
  { running, state: { retry } }: StatusSeen,
): string | null {
  if (finishedAt === null && running === null) {
    const why = retry === null ? '' : ` (${retry.reason})`;
    return `it did not finish${why}: the daemon resumes it, or: npx catchword sync`;
  }
  return error === null ? null : `${state === 'failed' ? 'it failed: ' : ''}${error}`;
}

export function plannedText({ state, plans: { nextFull, nextDelta, timezone }, servers }: StatusSeen): string | null {
  // Nothing starts a run if no daemon is alive.
  if (servers.daemon === null) return null;
  const planned = { 'full load': nextFull, 'delta load': nextDelta, 'another try': state.retry?.at ?? null };
  const texts = Object.entries(planned).flatMap(([name, at]) =>
    at === null ? [] : [`${name} ${timeIn(at, timezone)}`],
  );
  return texts.join(', ') || null;
}

/** `3 scheduled delta loads, 2026-11-20 02:00:00 UTC to …: no daemon is running` */
export function missedTexts({ missed_full: full, missed_delta: delta }: Missed, timezone: string): string[] {
  return Object.entries({ full, delta }).flatMap(([kind, missed]) => {
    if (missed === null) return [];
    const { ticks, from, up_to: upTo, reason } = missed;
    const many = ticks > MOST_MISSED ? `more than ${count(MOST_MISSED)}` : count(ticks);
    const first = timeIn(Date.parse(from ?? ''), timezone);
    const when = ticks === 1 ? first : `${first} to ${timeIn(Date.parse(upTo ?? ''), timezone)}`;
    return `${many} scheduled ${kind} load${ticks === 1 ? '' : 's'}, ${when}${reason === null ? '' : `: ${reason}`}`;
  });
}

/** Whether a running process was started with another setting than the command that asks. */
function isElsewise({ daemon, relay }: Servers, setting: string): boolean {
  return [daemon, relay].some((server) => server?.other_settings.includes(setting) === true);
}

export function sinkText(sink: SinkSeen, { daemon, relay }: Servers): string {
  const { store, row, name, state, held, error, lagRecords, lagSeconds } = sink;
  const at = row?.errorAt ?? null;
  const wrong = error === null ? '' : `: ${printable(error)}${at === null ? '' : ` (${time(at)})`}`;
  if (row === undefined || lagRecords === null) {
    const start =
      relay === null && daemon === null ? 'the daemon (or relay) starts' : 'you restart the daemon (or relay)';
    return `${name}: ${state}, nothing is delivered before ${start}${wrong}`;
  }
  const since = lagSeconds === null ? '' : ` for ${duration(lagSeconds * 1000)}`;
  const behind = lagRecords === 0 ? 'up to date' : `${plural(lagRecords, 'change')} behind${since}`;
  const parked = store.sinks.parkedCount(row.id);
  const refused = parked === 0 ? '' : `, ${plural(parked, 'event')} parked (npx catchword sink parked ${name})`;
  return `${name}: ${state}, ${behind}${refused}${held === null ? wrong : `: ${held.reason}. ${held.advice}`}`;
}

/** A channel, for a person. */
export function channelText(
  { name, kind, deliveredAt, waiting, givenUp, error, nextTryAt }: ChannelSeen,
  servers: Servers,
) {
  const isUsed = !isElsewise(servers, `CATCHWORD_NOTIFY_${name.toUpperCase()}`);
  const parts = [deliveredAt === null ? 'no message so far' : `last message ${time(deliveredAt)}`];
  if (!isUsed) parts.push('not used as it is set here before you restart the daemon');
  if (waiting > 0) {
    parts.push(`${plural(waiting, 'message')} waiting${nextTryAt === null ? '' : ` until ${time(nextTryAt)}`}`);
  }
  if (givenUp > 0) parts.push(`${plural(givenUp, 'message')} given up`);
  return `${name}: ${kind}, ${parts.join(', ')}${error === null ? '' : `: ${error}`}`;
}

/** With the source's own total, if it is another one. */
export function productsText({ products, total }: Pick<StatusSeen, 'products' | 'total'>): string {
  return total === null || total === products
    ? count(products)
    : `${count(products)}, the source had ${count(total)} in the last full run`;
}

/** Says when the mirror was complete. */
export function completeText({ asOf, freshness, nowMs }: MirrorState): string {
  if (asOf === null) return 'never: the first full load has not finished';
  if (freshness === 'clock')
    return `as of ${time(asOf)}, which this machine's clock has not reached: its age is unknown`;
  return `as of ${time(asOf)}, ${ago(asOf, nowMs)}${freshness === 'stale' ? ': too old to rely on' : ''}`;
}
