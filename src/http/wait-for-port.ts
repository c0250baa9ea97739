import type { Clock } from '@catchword/base/clock';
import { CatchwordError, messageOf, systemCodeOf } from '@catchword/base/errors';
import { failureOf, type Service } from '@catchword/base/lifecycle';
import type { Logger } from '@catchword/base/log';

const RETRY_MS = 2_000;

/** Starts a web service, and retries while the process that was active before still uses its port. */
export async function startWhenPortIsFree(
  start: () => Promise<Service>,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<Service> {
  const stopping = new AbortController();
  let service: Service | undefined;

  async function tryOnce(level: 'warn' | 'debug'): Promise<void> {
    try {
      service = await start();
    } catch (error) {
      if (!(error instanceof CatchwordError) || systemCodeOf(error.cause) !== 'EADDRINUSE') throw error;
      log[level]({ code: error.code, reason: messageOf(error) }, 'the port is not free yet, retrying');
    }
  }

  async function retry(): Promise<void> {
    while (service === undefined && !stopping.signal.aborted) {
      await clock.sleep(RETRY_MS, stopping.signal).catch(() => {});
      if (!stopping.signal.aborted) await tryOnce('debug');
    }
  }

  await tryOnce('warn');
  const retrying = retry();
  return {
    name: 'web',
    failed: failureOf(retrying.then(() => service?.failed)),
    stop: async () => {
      stopping.abort();
      await retrying.catch(() => {});
      await service?.stop();
    },
  };
}
