import { isUtf8 } from 'node:buffer';
import { pageOf } from '../catalog/validate-page.ts';
import { doubtAge } from '../catalog/watermark.ts';
import type { CatalogClient } from '../client/catalog-client.ts';
import { notUtf8 } from '../client/http/response-body.ts';
import { CatchwordError } from '../errors.ts';
import type { ReadWindow, ValidatePage } from '../queue/queue.ts';

/**
 * Reads of a page that contradicts its totals, is too old or is not UTF-8. The last read is used, with its doubt noted.
 */
const DOUBTED_READS = 3;

/**
 * Makes one request for one page; the queues decide about retries.
 * @param overlapMs a page that a cache kept for longer is read again
 */
export function createReadWindow(
  client: CatalogClient,
  overlapMs: number,
  validate: ValidatePage = pageOf,
): ReadWindow {
  return async (task, signal, attempt, arrived) => {
    const { body, ...response } = await client.read(task, signal);
    arrived?.(body.byteLength);
    const isLastRead = attempt >= Math.min(DOUBTED_READS, task.maxAttempts);
    if (!isLastRead && !isUtf8(body)) throw notUtf8();
    const page = await validate(body, task);
    const doubt = page.doubt ?? doubtAge(response, overlapMs);
    if (doubt !== null && !isLastRead) {
      throw new CatchwordError('PAGE_INVALID', doubt, { hint: 'The page is read again.' });
    }
    return { page, response };
  };
}
