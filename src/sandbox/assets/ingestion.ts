import type { Clock } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import { type Asset, buildStatusOf } from './asset.ts';
import { callBack } from './callback.ts';

/** So many times an address is called at most. */
const CALLS = 4;

/** Which call of which asset: it may be ingested again meanwhile. */
export interface PlannedCall {
  readonly vbid: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}

export interface Ingestions {
  /** Calls the asset's `callback_url` when its ingestion has ended. What becomes of the asset needs no timer: see `asset.ts`. */
  announce(asset: Asset): void;
  /** Before `start`: a call that need not be made, since it was. */
  forget(call: PlannedCall): void;
  /** Until then, no call is made. */
  start(): void;
  /** Resolves when no call is under way or planned any more. */
  settled(): Promise<void>;
}

export interface IngestionOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Wait before the second call; twice as long before each further one. */
  readonly retryMs: number;
  readonly allowPrivate: boolean;
  /** Called when the address has answered or was given up. */
  readonly done: (call: PlannedCall) => void;
}

interface Announced {
  readonly url: string;
  readonly planned: PlannedCall;
  readonly asset: Asset;
  readonly endsAt: number;
}

/**
 * Interface, section 6. Method, payload and retries are not shown there; here: POST of
 * `{"vbid":"…","status":"approved"}`, or `failed` for a file that is neither EPUB nor PDF.
 */
export function createIngestions({ clock, signal, retryMs, allowPrivate, done }: IngestionOptions): Ingestions {
  const running = new Set<Promise<void>>();
  const waiting = new Map<string, Announced>();
  let started = false;
  const keyOf = ({ vbid, startedAt }: PlannedCall) => `${startedAt} ${vbid}`;

  async function call({ url, planned, asset, endsAt }: Announced): Promise<void> {
    const body = JSON.stringify({ vbid: asset.vbid, status: buildStatusOf(asset, endsAt) });
    await clock.sleep(Math.max(0, endsAt - clock.now()), signal);
    for (let calls = 1; !(await callBack({ url, body, allowPrivate, signal })) && calls < CALLS; calls++) {
      await clock.sleep(retryMs * 2 ** (calls - 1), signal);
    }
    if (!signal.aborted) done(planned);
  }

  function run(announced: Announced): void {
    const calling = call(announced)
      .catch((error: unknown) => {
        // The sandbox's end interrupts a wait. Whatever else failed, nobody waits here for the error.
        if (!signal.aborted) process.emitWarning(`callback_url of ${announced.asset.vbid}: ${messageOf(error)}`);
      })
      .finally(() => running.delete(calling));
    running.add(calling);
  }

  return {
    announce: (asset) => {
      const { callbackUrl: url = null, startedAt = 0, endsAt = 0 } = asset.ingestion ?? {};
      if (url === null) return;
      const announced = { url, planned: { vbid: asset.vbid, startedAt }, asset, endsAt };
      if (started) run(announced);
      else waiting.set(keyOf(announced.planned), announced);
    },
    forget: (planned) => {
      waiting.delete(keyOf(planned));
    },
    start: () => {
      started = true;
      for (const announced of waiting.values()) run(announced);
      waiting.clear();
    },
    settled: async () => {
      await Promise.allSettled(running);
    },
  };
}
