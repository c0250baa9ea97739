import { CatchwordError } from '@catchword/base/errors';
import { duration, time } from '../../report/text.ts';
import type { Store } from '../../store/store.ts';

/** A decision that waited longer is not carried out, because it may not be wanted any more; milliseconds. */
export const LONGEST_WAIT_MS = 3_600_000;

/** @throws CatchwordError SOURCE_RATE_LIMITED if the source asked for a pause that is too long to wait for */
export function checkPause({ source }: Pick<Store, 'source'>, nowMs: number): void {
  const pause = source.pause(nowMs);
  const waitMs = pause === null ? 0 : pause.until - nowMs;
  if (pause === null || waitMs <= LONGEST_WAIT_MS) return;
  throw new CatchwordError('SOURCE_RATE_LIMITED', `the source asked for no request before ${time(pause.until)}`, {
    hint: `Retry in ${duration(waitMs)}, or ask at once with: npx catchword sync --now.`,
    retryAfterMs: waitMs,
  });
}
