import { CatchwordError } from '@catchword/base/errors';
import { isPage } from '../errors/error-message.ts';
import { refusalError } from '../errors/service-error.ts';
import type { Answer, Prepared } from './exchange.ts';
import { type BodyLimits, bodyOf, checkType, textOfBody } from './response-body.ts';

/** A response whose bytes are read, but not yet understood. */
export type Received = Omit<Answer, 'text' | 'body' | 'refusal'> & { readonly raw: Uint8Array };

export function isGood(status: number): boolean {
  return status >= 200 && status <= 299;
}

const NO_PAGE = new Uint8Array();
/** Bytes. A page of the catalog is longer, unless it is an error. */
const MAX_ERROR_PAGE = 2_048;

/** The text of a page if it may be an error. Bytes that are not UTF-8 reject one item, not the page. */
function errorTextOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return byteLength > MAX_ERROR_PAGE ? '' : Buffer.from(buffer, byteOffset, byteLength).toString('utf8');
}

/** The text of a good or accepted answer; of a page, its bytes too. @throws CatchwordError SOURCE_BODY, SOURCE_NOT_SERVICE */
async function contentOf(format: Prepared['format'], { raw, headers }: Received, limits: BodyLimits) {
  const body = await bodyOf(raw, headers, limits).catch((error: unknown) => {
    // A page for people is called so even if it cannot be decoded.
    checkType(raw, headers);
    throw error;
  });
  checkType(body, headers);
  return format === 'page' ? { text: errorTextOf(body), body } : { text: textOfBody(body), body: NO_PAGE };
}

/** @throws CatchwordError the error of a status that the operation does not accept; SOURCE_BODY, SOURCE_NOT_SERVICE */
export async function readResponse(asked: Prepared, received: Received, limits: BodyLimits): Promise<Answer> {
  const { raw, ...known } = received;
  const { status, headers } = known;
  const answer = { ...known, body: NO_PAGE };
  if (isGood(status)) {
    const content = await contentOf(asked.format, received, limits).catch((error: unknown) => {
      if (!(error instanceof CatchwordError)) throw error;
      // A write may have been done, so it is not retried.
      throw error.with({ status, retryable: error.retryable && asked.method === 'GET' });
    });
    return { ...answer, ...content };
  }
  // The status says enough about an unreadable body.
  const text = await bodyOf(raw, headers, limits).then(textOfBody, () => '');
  const refusal = refusalError(asked, { ...answer, text });
  if (!asked.accepts?.includes(status)) throw refusal;
  const content = await contentOf(asked.format, received, limits).catch(() => null);
  // An accepted status may come from a proxy, whose page is not an answer of the service.
  if (content === null || isPage(content.text)) throw refusal;
  return { ...answer, ...content, refusal };
}
