import { isUtf8 } from 'node:buffer';
import { CatchwordError } from '@catchword/base/errors';
import type { Hide } from '@catchword/base/redact';
import { type FetchTask, requestOf } from '@catchword/catalog/page-types';
import { pageOf } from '@catchword/catalog/validate-page';
import { type ReadWindow, toReadError, type ValidatePage } from '@catchword/queue/queue-port';
import type { CatalogClient } from 'catchword-client/catalog-client';
import { notUtf8 } from 'catchword-client/http/response-body';
import { doubtAge } from '../proof/watermark.ts';
import { isRefusedDelta } from './failed-window.ts';

/** Reads of a page that contradicts its totals, is too old or not UTF-8. The last read is used, with its doubt noted. */
const DOUBTED_READS = 3;
/** The same for a page that contradicts its totals: one that is short twice, as where products are hidden, stays so. */
const SHORT_READS = 2;
/** Requests for a delta that is refused: a balancer may refuse one of them, a source without deltas refuses each. */
const REFUSED_READS = 3;

/** Whether the source, or what is in front of it, refused a request; but not that the access token is not valid (601). */
function isRefusal({ code, status = 0, retryable, serviceCode }: CatchwordError): boolean {
  return serviceCode !== 601 && (code === 'SOURCE_NOT_SERVICE' || (!retryable && status >= 400));
}

/**
 * The error of one request. A run whose other requests were answered has the right address and key, so a refusal is more
 * likely one of a balancer or a firewall: it is retried.
 */
function errorOf(error: CatchwordError, task: FetchTask, attempt: number, hide: Hide): CatchwordError {
  const messageOf = (most: number) => `${hide(error.message)} (${requestOf(task)}, attempt ${attempt} of ${most})`;
  const message = messageOf(task.maxAttempts);
  if (task.answered !== true || task.vbid !== undefined || !isRefusal(error)) return error.with({ message });
  const isFinal = isRefusedDelta(task, error) && attempt >= REFUSED_READS;
  return error.with({
    code: 'SOURCE_UNAVAILABLE',
    message: `${isFinal ? messageOf(attempt) : message}; other requests of this run were answered`,
    hint: `Look for what refused this one, such as a balancer or a firewall. If all are refused: ${error.hint ?? ''}`,
    retryable: !isFinal,
  });
}

/** Makes one request for a page; queues retry. @param overlapMs a page that a cache kept for longer is read again */
export function createPageFetcher(
  client: CatalogClient,
  overlapMs: number,
  validate: ValidatePage = pageOf,
): ReadWindow {
  const readOnce: ReadWindow = async (task, signal, attempt, arrived) => {
    const { body, ...response } = await client.read(task, signal);
    arrived?.(body.byteLength);
    const isLastRead = attempt >= Math.min(DOUBTED_READS, task.maxAttempts);
    if (!isLastRead && !isUtf8(body)) throw notUtf8();
    const page = await validate(body, task);
    if (!isLastRead && page.isDamaged === true) {
      throw new CatchwordError('PAGE_BROKEN', 'an item of the page is not JSON', { hint: 'The page is read again.' });
    }
    const doubt = page.doubt ?? doubtAge(response, overlapMs);
    const isLastShort = page.doubt !== null && attempt >= SHORT_READS;
    if (doubt !== null && !isLastRead && !isLastShort) {
      throw new CatchwordError('PAGE_INVALID', doubt.said, { hint: 'The page is read again.' });
    }
    return { page: { ...page, doubt }, response };
  };
  return (task, signal, attempt, arrived) =>
    readOnce(task, signal, attempt, arrived).catch((error: unknown) => {
      throw signal.aborted ? error : errorOf(toReadError(error), task, attempt, client.hide ?? String);
    });
}
