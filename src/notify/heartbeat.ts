import type { Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { Service } from '../lifecycle.ts';
import type { Logger } from '../log.ts';
import { secretsOf, withoutSecrets } from '../relay/sink-config.ts';

/** What a run did: it started, or it ended. */
export type Beat = 'start' | 'complete' | 'fail';

export interface Heartbeat extends Service {
  /** Returns at once. A newer beat replaces one that waits. */
  beat(beat: Beat): void;
}

interface HeartbeatOptions {
  /** CATCHWORD_HEARTBEAT_URL. */
  readonly url: string;
  readonly clock: Clock;
  readonly log: Logger;
}

const SUFFIXES: Readonly<Record<Beat, string>> = { start: '/start', complete: '', fail: '/fail' };
const TIMEOUT_MS = 5_000;
/** Pauses between the tries of one beat, milliseconds. */
const PAUSES_MS = [1_000, 3_000];
/** How long a process that ends waits for the last beat. */
const GRACE_MS = 5_000;

/**
 * Calls an address when runs start and end, as healthchecks.io expects it. Beats are sent one after the other, apart from
 * the run, so that an address that does not answer delays no run.
 */
export function startHeartbeat({ url: text, clock, log }: HeartbeatOptions): Heartbeat {
  const url = new URL(text);
  const secrets = secretsOf(url, undefined);
  const stopping = new AbortController();
  let waiting: Beat[] = [];
  let sending: Promise<void> | null = null;
  let hasFailed = false;

  async function send(beat: Beat): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        // Loaded when the first run starts.
        const { createHttpTarget } = await import('../relay/http-target.ts');
        const isPrivateAllowed = url.hash === '#allow=private';
        const target = createHttpTarget({ url, timeoutMs: TIMEOUT_MS, isPrivateAllowed });
        const agent = target.connect();
        try {
          await target.get(agent, SUFFIXES[beat], stopping.signal);
        } finally {
          await agent.destroy();
        }
        if (hasFailed) log.info({}, 'heartbeats are answered again');
        hasFailed = false;
        return;
      } catch (error) {
        if (stopping.signal.aborted) return;
        const pauseMs = PAUSES_MS[attempt];
        if (pauseMs === undefined) {
          const reason = withoutSecrets({ secrets }, messageOf(error));
          if (!hasFailed) log.warn({ reason }, 'CATCHWORD_HEARTBEAT_URL does not take heartbeats; runs go on');
          hasFailed = true;
          return;
        }
        await clock.sleep(pauseMs, stopping.signal).catch(() => {});
      }
    }
  }

  async function sendAll(): Promise<void> {
    for (let beat = waiting.shift(); beat !== undefined; beat = waiting.shift()) await send(beat);
    sending = null;
  }

  return {
    name: 'heartbeat',
    beat: (beat) => {
      // The newest result and a start after it are all that a receiver needs.
      const isStart = beat === 'start';
      waiting = [...(isStart ? waiting.filter((one) => one !== 'start').slice(-1) : []), beat];
      sending ??= sendAll();
    },
    stop: async () => {
      const timer = setTimeout(() => stopping.abort(), GRACE_MS);
      await sending;
      clearTimeout(timer);
      stopping.abort();
    },
  };
}
