import { isUtf8 } from 'node:buffer';
import { promisify } from 'node:util';
import { gunzip, type ZlibOptions } from 'node:zlib';
import { CatchwordError, messageOf } from '@catchword/base/errors';
import { GZIP_CHUNK, MOST_UNPACKED } from '@catchword/base/gzip-chunk';
import { parsed } from '@catchword/catalog/cut-page';
import { type Headers, header } from '../headers.ts';

/*
 * The gate in front of every parser: a body passes whole, with the expected size, type and encoding, or not at all. Its
 * depth is checked where it is parsed.
 */

export interface BodyLimits {
  /** Bytes over the wire. */
  readonly maxWireBytes: number;
  /** Bytes after decompression. */
  readonly maxBytes: number;
}

export const BODY_LIMITS: BodyLimits = { maxWireBytes: 32 * 2 ** 20, maxBytes: MOST_UNPACKED };

/** Ten thousand credentials are about 4 MB of XML. */
export const XML_LIMITS: BodyLimits = { maxWireBytes: 8 * 2 ** 20, maxBytes: 8 * 2 ** 20 };

const MARK = [0xef, 0xbb, 0xbf];

const HINT = 'Retry; if the error persists, the service or a proxy sends an unreadable answer.';

export function bodyError(message: string, hint = HINT, cause?: unknown): CatchwordError {
  return new CatchwordError('SOURCE_BODY', message, { hint, cause });
}

export function notUtf8(): CatchwordError {
  return bodyError('the answer is not UTF-8');
}

export async function readBytes(
  stream: AsyncIterable<Uint8Array>,
  headers: Headers,
  { maxWireBytes }: BodyLimits,
): Promise<Uint8Array> {
  const announced = Number(header(headers, 'content-length') ?? Number.NaN);
  if (announced > maxWireBytes) throw bodyError(`the answer announces ${announced} bytes, more than ${maxWireBytes}`);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > maxWireBytes) throw bodyError(`the answer is larger than ${maxWireBytes} bytes`);
    chunks.push(chunk);
  }
  if (announced >= 0 && size !== announced) throw bodyError(`the answer ended after ${size} of ${announced} bytes`);
  return Buffer.concat(chunks, size);
}

/** With `info`, the result has the engine too, which the types do not know. */
type Unzip = (bytes: Uint8Array, options: ZlibOptions) => Promise<{ buffer: Buffer; engine: { bytesWritten: number } }>;
const unzip = promisify(gunzip) as unknown as Unzip;

/** Content codings; anything else in their place, such as `UTF-8` or `none`, does not count. */
const CODINGS = /^(gzip|x-gzip|deflate|br|zstd|compress|x-compress|dcb|dcz)\b/;

async function decode(bytes: Uint8Array, headers: Headers, { maxBytes }: BodyLimits): Promise<Uint8Array> {
  const encoding = (header(headers, 'content-encoding') ?? 'identity').trim().toLowerCase();
  if (!CODINGS.test(encoding)) return bytes;
  if (encoding !== 'gzip' && encoding !== 'x-gzip') {
    const hint = 'Check the proxies in between: only gzip was requested.';
    throw bodyError(`the answer is encoded as ${encoding.slice(0, 40)}`, hint);
  }
  try {
    const { buffer, engine } = await unzip(bytes, { maxOutputLength: maxBytes, chunkSize: GZIP_CHUNK, info: true });
    if (engine.bytesWritten === bytes.length) return buffer;
  } catch (error) {
    throw bodyError(`the answer's gzip is damaged or too large (${messageOf(error)})`, undefined, error);
  }
  throw bodyError("the answer's gzip is followed by other data");
}

const CHARSET = /;\s*charset\s*=\s*["']?([^\s;"']+)/i;
const XML_ENCODING = /^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"']+)/i;
/** Bytes. The declaration of XML is shorter. */
const DECLARATION = 200;
/** Encodings in which a character may take several bytes: text in them may be valid UTF-8 by chance. */
const SEVERAL_BYTES = /^(?:gb|big5|euc|iso-2022|shift)/;

/** As UTF-8, if the answer declares another charset. */
function toUtf8(body: Uint8Array, headers: Headers): Uint8Array {
  const start = String.fromCharCode(...body.subarray(0, DECLARATION));
  const declared = CHARSET.exec(header(headers, 'content-type') ?? '') ?? XML_ENCODING.exec(start);
  const label = declared?.[1] ?? 'utf-8';
  try {
    const decoder = new TextDecoder(label, { fatal: true });
    // Bytes that are not UTF-8 may concern one item only, so they are found later.
    if (decoder.encoding === 'utf-8') return body;
    const mayBeUtf8 = !SEVERAL_BYTES.test(decoder.encoding) && !(/^utf-16/.test(decoder.encoding) && body.includes(0));
    // The bytes win over the label: text in a charset of single bytes is hardly ever valid UTF-8.
    return mayBeUtf8 && isUtf8(body) ? body : new TextEncoder().encode(decoder.decode(body));
  } catch (error) {
    // The same for a label that is not known, such as `utf8mb4`, `none` or `binary`.
    if (error instanceof RangeError && isUtf8(body)) return body;
    const hint = 'Ask the service for UTF-8, or for a charset that is what it says.';
    throw bodyError(
      `the answer cannot be decoded from the charset that it declares: ${label.slice(0, 40)}`,
      hint,
      error,
    );
  }
}

/** The bytes of a body after decompression, in UTF-8 without a byte order mark. @throws CatchwordError SOURCE_BODY */
export async function bodyOf(
  bytes: Uint8Array,
  headers: Headers,
  limits: BodyLimits,
): Promise<Uint8Array<ArrayBuffer>> {
  const { buffer, byteOffset, byteLength } = toUtf8(await decode(bytes, headers, limits), headers);
  if (byteLength > limits.maxBytes) throw bodyError(`the answer is larger than ${limits.maxBytes} bytes`);
  const body = new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
  return MARK.every((byte, at) => body[at] === byte) ? body.subarray(MARK.length) : body;
}

/** The text of a body, whatever type it has. @throws CatchwordError SOURCE_BODY */
export function textOfBody(body: Uint8Array): string {
  if (!isUtf8(body)) throw notUtf8();
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
}

/** Some services label errors as plain text. An answer without a type is parsed as what was asked for. */
const DATA = /^(application|text)\/([\w.-]+\+)?(json|xml|plain)$/;

/** A number or a word could be a message for people. */
function isJson(body: Uint8Array): boolean {
  const value = parsed(body);
  return typeof value === 'object' && value !== null;
}

/**
 * Checks that a body with content is JSON or XML by its type, or JSON whatever its type says, and not a page for people.
 * @throws CatchwordError SOURCE_NOT_SERVICE
 */
export function checkType(body: Uint8Array, headers: Headers): void {
  const type = header(headers, 'content-type')?.split(/[;,]/)[0]?.trim().toLowerCase() ?? '';
  if (body.length === 0 || type === '' || DATA.test(type) || isJson(body)) return;
  throw new CatchwordError('SOURCE_NOT_SERVICE', `the answer is ${type.slice(0, 40)}, not JSON or XML`, {
    hint: 'Check {setting}; the answer may come from a proxy or be a maintenance page.',
    setting: 'CATCHWORD_BASE_URL',
  });
}
