import { AsyncLocalStorage } from 'node:async_hooks';
import { unlessAborted } from '@catchword/base/abort';
import { messageOf } from '@catchword/base/errors';
import type { Hide } from '@catchword/base/redact';
import { isSinkError, SinkError } from '@catchword/sink-kit/sink';

/*
 * The errors that a driver throws outside of every call: in the data handler of its socket, in a timer, in a promise that
 * has no reader. Node.js ends the process at such an error, and with it every other sink.
 *
 * Whatever a driver starts while `work` runs (sockets, timers, promises) carries the mark of this one confinement,
 * and so does an error that escapes from it: then `work` fails, now and from now on, and nothing else does. An error
 * without a mark ends the process as before.
 *
 * Other ways were tried. A socket whose listeners are wrapped catches what a parser throws, but not what ioredis throws
 * again in `process.nextTick` on purpose, nor a rejected promise of NATS, nor a timer of a custom module, and each driver
 * hides its socket in another place. A process for each sink costs 50 MB each, and copies every event. The mark costs
 * 0.1 µs per promise.
 */

const marks = new AsyncLocalStorage<(error: unknown) => void>();

function onEscape(error: unknown): void {
  const fail = marks.getStore();
  if (fail !== undefined) {
    fail(error);
    return;
  }
  // Ends the process as if this function did not exist, unless the process has other listeners.
  process.setUncaughtExceptionCaptureCallback(null);
  setImmediate(watch);
  process.nextTick(() => {
    throw error;
  });
}

function watch(): void {
  if (!process.hasUncaughtExceptionCaptureCallback()) process.setUncaughtExceptionCaptureCallback(onEscape);
}

/** Describes anything that was thrown; a module may throw a value that cannot even be made a text. */
function textOf(error: unknown): string {
  try {
    return `${messageOf(error)}`;
  } catch {
    return 'it threw a value that is not an error';
  }
}

/** Returns an error that the relay can handle. */
function soundError(error: unknown): Error {
  const isSound = error instanceof Error && (error.name !== 'SinkError' || isSinkError(error));
  if (isSound && typeof error.message === 'string') return error;
  return new SinkError('unavailable', textOf(error));
}

/** @param onFailure called once, when an error has escaped, whose text `hide` masks */
export function createErrorBoundary(onFailure: () => void, hide: Hide) {
  const failed = new AbortController();
  const fail = (error: unknown): void => {
    if (failed.signal.aborted) return;
    failed.abort(new SinkError('unavailable', `its driver failed: ${hide(textOf(error))}`, { cause: error }));
    onFailure();
  };

  /** Runs `work`, even after a failure. @throws what `work` throws */
  async function spared<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    watch();
    try {
      return await marks.run(fail, async () => await work());
    } catch (error) {
      throw soundError(error);
    }
  }

  return {
    spared,
    /**
     * Runs `work`.
     * @throws SinkError unavailable if an error escapes from this or an earlier call; otherwise what `work` throws
     */
    confined: <Result>(work: () => Result | Promise<Result>): Promise<Result> => {
      if (failed.signal.aborted) return Promise.reject(failed.signal.reason);
      return unlessAborted(spared(work), failed.signal);
    },
  };
}
