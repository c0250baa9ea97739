import type { Clock } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import { type Asset, buildStatusOf, type Ingestion } from './asset.ts';
import { callBack } from './callback.ts';

/** The most calls of one address. */
const MAX_CALLS = 4;

/**
 * Identifies a callback: an asset may be ingested several times.
 * @rule 2.1-38..39, 4.1-10, 6-1..2
 */
export interface PlannedCall {
  readonly vbid: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}

export interface IngestionOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Wait before the second call. It doubles before each further call. */
  readonly retryMs: number;
  readonly allowPrivate: boolean;
  /** Runs when the address has answered, or has failed too often. */
  readonly done: (call: PlannedCall) => void;
}

/**
 * Interface, section 6. Method, payload and retries are not shown there. Here: POST of
 * `{"vbid":"…","status":"approved"}`, or `failed` for a file that is neither EPUB nor PDF.
 */
export function createIngestions({ clock, signal, retryMs, allowPrivate, done }: IngestionOptions) {
  const running = new Set<Promise<void>>();
  const waiting = new Map<string, () => void>();
  let started = false;
  const keyOf = ({ vbid, startedAt }: PlannedCall) => `${startedAt} ${vbid}`;

  async function call(asset: Asset, url: string, { startedAt, endsAt }: Ingestion): Promise<void> {
    const { vbid } = asset;
    const body = JSON.stringify({ vbid, status: buildStatusOf(asset, endsAt) });
    try {
      await clock.sleep(Math.max(0, endsAt - clock.now()), signal);
      for (let calls = 1; !(await callBack({ url, body, allowPrivate, signal })) && calls < MAX_CALLS; calls++) {
        await clock.sleep(retryMs * 2 ** (calls - 1), signal);
      }
      if (!signal.aborted) done({ vbid, startedAt });
    } catch (error) {
      // Stopping the sandbox interrupts a wait. Any other error has no caller to report to.
      if (!signal.aborted) process.emitWarning(`callback_url of ${vbid}: ${messageOf(error)}`);
    }
  }

  function run(start: () => Promise<void>): void {
    const calling = start().finally(() => running.delete(calling));
    running.add(calling);
  }

  return {
    /** Plans the call of an asset's `callback_url` for the end of its ingestion. */
    announce: (asset: Asset): void => {
      const { vbid, ingestion } = asset;
      const callbackUrl = ingestion?.callbackUrl ?? null;
      if (ingestion === null || callbackUrl === null) return;
      const { startedAt } = ingestion;
      const start = () => run(() => call(asset, callbackUrl, ingestion));
      if (started) start();
      else waiting.set(keyOf({ vbid, startedAt }), start);
    },
    /** Removes a call that was made already. Before `start`. */
    forget: (planned: PlannedCall): void => {
      waiting.delete(keyOf(planned));
    },
    /** Starts to make calls. */
    start: (): void => {
      started = true;
      for (const start of waiting.values()) start();
      waiting.clear();
    },
    /** Resolves when no call is waiting or under way. */
    settled: async (): Promise<void> => {
      await Promise.all(running);
    },
  };
}

export type Ingestions = ReturnType<typeof createIngestions>;
