import { systemCodeOf } from './errors.ts';

/** What undici's parser says of an answer that is not valid HTTP; null for any other error, such as a lost connection. */
export function brokenAnswer(error: unknown): string | null {
  const code = systemCodeOf(error);
  const isOfParser = error instanceof Error && error.name === 'HTTPParserError';
  if (!isOfParser && !/^(HPE_|UND_ERR_HEADERS_OVERFLOW$|UND_ERR_RES_CONTENT_LENGTH_MISMATCH$)/.test(code ?? ''))
    return null;
  const said = error instanceof Error ? error.message : '';
  return `the answer is not valid HTTP: ${said}${code === undefined ? '' : ` (${code})`}`;
}
