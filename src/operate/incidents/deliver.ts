import { backoffMs, PATIENCE_MS } from '@catchword/base/backoff';
import type { Clock } from '@catchword/base/clock';
import { iso } from '@catchword/base/iso-time';
import type { Logger } from '@catchword/base/log';
import { isSinkError } from '@catchword/sink-kit/sink';
import type { WaitingNotice } from '../../store/rows/incident-rows.ts';
import type { LeasedDaemon } from '../../store/schema/writers.ts';
import type { Store } from '../../store/store.ts';
import type { ChannelConfig } from './channel-config.ts';
import { messageOf, type Sender } from './message-text.ts';

export interface DeliverOptions {
  readonly store: Store;
  readonly leased: LeasedDaemon;
  readonly clock: Clock;
  readonly log: Logger;
  readonly sender: Sender;
}

/** After this time since its first try, a message is given up; milliseconds. */
const GIVE_UP_MS = 86_400_000;
const MAX_PAUSE_MS = 10 * 60_000;
/** For failures that do not pass by themselves, such as a rejected password. */
const MAX_LASTING_PAUSE_MS = PATIENCE_MS;

/** Whether a channel that failed is to be left alone. A pause that is longer than any was written by a clock ahead. */
function isPaused(waiting: readonly WaitingNotice[], nowMs: number): boolean {
  const tried = waiting.filter(({ attempts }) => attempts > 0);
  const leftMs = Math.max(0, ...tried.map(({ nextTryAt }) => nextTryAt - nowMs));
  return leftMs > 0 && leftMs <= PATIENCE_MS;
}

/** How long to leave the channel alone after a failure: a growing, random time, or what it asked for if that is longer. */
function pauseAfter(error: unknown, attempts: number, { clock }: DeliverOptions): number {
  const { failure, retryAfterMs = 0 } = isSinkError(error) ? error : { failure: 'unavailable' };
  const ceilingMs = failure === 'unavailable' ? MAX_PAUSE_MS : MAX_LASTING_PAUSE_MS;
  const backoff = backoffMs(attempts, () => clock.random(), ceilingMs);
  return Math.round(Math.max(Math.min(retryAfterMs, PATIENCE_MS), backoff));
}

/** From when on a message is tried. That begins again if it was due for an hour, and no daemon tried it. */
function firstTry({ firstTriedAt, nextTryAt }: WaitingNotice, nowMs: number): number {
  return firstTriedAt === null || nowMs - nextTryAt > PATIENCE_MS ? nowMs : firstTriedAt;
}

/**
 * Sends all that waits for a channel, in one message. After a failure the mirror notes when it was first tried, and when to
 * try again, so that a restart changes nothing.
 * @throws CatchwordError LEASE_LOST, or another error of the mirror
 */
export async function deliver(channel: ChannelConfig, options: DeliverOptions, signal: AbortSignal): Promise<void> {
  const { store, leased, clock, log, sender } = options;
  const { name } = channel;
  const waiting = store.episodes.waiting(name);
  if (waiting.length === 0 || isPaused(waiting, clock.now())) return;
  const triedAtMs = clock.now();
  const topicsOf = (notices: readonly WaitingNotice[]) => [...new Set(notices.map(({ topic }) => topic))].join(', ');
  const topics = topicsOf(waiting);
  let failure: unknown;
  try {
    // Another process may have taken over since.
    leased.check();
    const send = await channel.make();
    const note = await send(messageOf(waiting, store.incarnation, sender), signal);
    if (note !== null) log.warn({ channel: name, reason: note }, 'a notification did not reach everybody');
  } catch (error) {
    if (signal.aborted) return;
    failure = error;
  }
  const now = clock.now();
  if (failure === undefined) {
    leased.write(({ episodes }) => {
      for (const notice of waiting) episodes.delivered({ ...notice, channel: name, atMs: now });
    });
    log.info({ channel: name, topic: topics }, 'notification delivered');
    return;
  }
  const reason = channel.errorText(failure);
  const failures = Math.max(...waiting.map(({ attempts }) => attempts)) + 1;
  const pauseMs = pauseAfter(failure, failures, options);
  const isGone = isSinkError(failure) && failure.failure === 'gone';
  const isOver = (notice: WaitingNotice): boolean => isGone || now - firstTry(notice, triedAtMs) > GIVE_UP_MS;
  leased.write(({ episodes }) => {
    for (const notice of waiting) {
      const nextTryAtMs = isOver(notice) ? 0 : now + pauseMs;
      episodes.failed({
        ...notice,
        channel: name,
        error: reason,
        firstTriedAt: firstTry(notice, triedAtMs),
        nextTryAtMs,
      });
    }
  });
  const given = waiting.filter(isOver);
  const lost = { channel: name, topic: topicsOf(given), reason, failures };
  if (given.length > 0) log.error(lost, 'notification given up');
  if (given.length === waiting.length) return;
  const fields = { channel: name, topic: topics, reason, failures, pauseMs, nextTryAt: iso(now + pauseMs) };
  log.warn(fields, 'notification failed, retrying');
}
