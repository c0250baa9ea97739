import { withAbort } from '@catchword/base/abort';
import type { Clock } from '@catchword/base/clock';
import { messageOf } from '@catchword/base/errors';
import type { Logger } from '@catchword/base/log';
import type { ProxySettings } from '@catchword/base/proxy';
import { isSinkError } from '@catchword/sink-kit/sink';

/** Start or end of a run. */
type Beat = 'start' | 'complete' | 'fail';

interface HeartbeatOptions {
  /** CATCHWORD_HEARTBEAT_URL. */
  readonly url: string;
  readonly proxies: ProxySettings;
  readonly clock: Clock;
  readonly log: Logger;
}

const SUFFIXES: Readonly<Record<Beat, string>> = { start: '/start', complete: '', fail: '/fail' };
const TIMEOUT_MS = 5_000;
/** Pauses between the tries of one beat, milliseconds. */
const PAUSES_MS = [1_000, 3_000];
/** How long a process that ends waits: for an earlier beat, so that they arrive in order, and in all. */
const EARLIER_MS = 2_000;
const GRACE_MS = 7_000;

/**
 * Calls an address when runs start and end, as healthchecks.io expects it. Beats are sent one after the other, apart from
 * the run, so that an address that does not answer delays no run.
 */
export function startHeartbeat({ url: text, proxies, clock, log }: HeartbeatOptions) {
  const url = new URL(text);
  const stopping = new AbortController();
  let waiting: Beat[] = [];
  let sending: Promise<void> | null = null;
  /** Ends the try of the current beat. */
  let current = new AbortController();
  let hasFailed = false;

  async function tryOnce(beat: Beat): Promise<void> {
    current = new AbortController();
    // Loaded when the first run starts.
    const { createHttpTarget } = await import('@catchword/sink-kit/http-target');
    const isPrivateAllowed = url.hash === '#allow=private';
    const target = createHttpTarget({ url, timeoutMs: TIMEOUT_MS, isPrivateAllowed, proxies });
    const agent = target.connect();
    try {
      await withAbort([stopping.signal, current.signal], (signal) => target.get(agent, SUFFIXES[beat], signal));
    } finally {
      await agent.destroy();
    }
  }

  async function send(beat: Beat): Promise<void> {
    for (let attempt = 0; !stopping.signal.aborted; attempt++) {
      try {
        await tryOnce(beat);
        if (hasFailed) log.info({}, 'heartbeats are answered again');
        hasFailed = false;
        return;
      } catch (error) {
        // A receiver with a single path hears of complete runs alone, and misses them after a failed one.
        if (beat !== 'complete' && isSinkError(error) && error.failure !== 'unavailable') return;
        const pauseMs = waiting.length > 0 ? undefined : PAUSES_MS[attempt];
        if (stopping.signal.aborted) return;
        if (pauseMs === undefined) {
          const reason = messageOf(error);
          if (!hasFailed) log.warn({ reason }, 'CATCHWORD_HEARTBEAT_URL does not take heartbeats; runs go on');
          hasFailed = true;
          return;
        }
        await clock.sleep(pauseMs, stopping.signal).catch(() => {});
        if (waiting.length > 0) return;
      }
    }
  }

  async function sendAll(): Promise<void> {
    for (let beat = waiting.shift(); beat !== undefined; beat = waiting.shift()) await send(beat);
    sending = null;
  }

  return {
    name: 'heartbeat',
    /** Returns at once. A newer beat replaces one that waits. */
    beat: (beat: Beat): void => {
      // The newest result and a start after it are all that a receiver needs.
      const isStart = beat === 'start';
      waiting = [...(isStart ? waiting.filter((one) => one !== 'start').slice(-1) : []), beat];
      sending ??= sendAll();
    },
    stop: async (): Promise<void> => {
      // The last beat says most.
      const preferLast = (): void => {
        if (waiting.length > 0) current.abort(new Error('a later heartbeat takes precedence'));
      };
      const timers = [setTimeout(preferLast, EARLIER_MS), setTimeout(() => stopping.abort(), GRACE_MS)];
      await sending;
      for (const timer of timers) clearTimeout(timer);
      stopping.abort();
    },
  };
}
