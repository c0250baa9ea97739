import { isUtf8 } from 'node:buffer';
import { promisify } from 'node:util';
import { gunzip, type InputType, type ZlibOptions } from 'node:zlib';
import { textOfBytes } from '../../catalog/byte-text.ts';
import { CatchwordError, messageOf } from '../../errors.ts';

/**
 * The gate in front of every parser: a body comes through whole, of the size, type and encoding that is expected, or not
 * at all. (How deep it is nested is seen where its items are cut out: catalog/validate-page.ts.)
 */
export interface BodyLimits {
  /** Bytes over the wire. */
  readonly maxWireBytes: number;
  /** Bytes after decompression. */
  readonly maxBytes: number;
}

export const BODY_LIMITS: BodyLimits = { maxWireBytes: 32 * 2 ** 20, maxBytes: 64 * 2 ** 20 };

/** Of XML. Ten thousand credentials are about 4 MB. */
export const XML_LIMITS: BodyLimits = { maxWireBytes: 8 * 2 ** 20, maxBytes: 8 * 2 ** 20 };

/** As undici gives them: one value, or several of the same name. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

export function header(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

const HINT = 'Try again; if it stays so, the service or something in between sends what cannot be read.';

function refuse(message: string, hint = HINT, cause?: unknown): CatchwordError {
  return new CatchwordError('SOURCE_BODY', message, { hint, cause });
}

/** The error of an answer that is not UTF-8. */
export function notUtf8(): CatchwordError {
  return refuse('the answer is not UTF-8');
}

/** Reads all of a body, and not a byte more than the limit. */
export async function readBytes(
  stream: AsyncIterable<Uint8Array>,
  headers: Headers,
  { maxWireBytes }: BodyLimits,
): Promise<Uint8Array> {
  const announced = Number(header(headers, 'content-length') ?? Number.NaN);
  if (announced > maxWireBytes) throw refuse(`the answer announces ${announced} bytes, more than ${maxWireBytes}`);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > maxWireBytes) throw refuse(`the answer is larger than ${maxWireBytes} bytes`);
    chunks.push(chunk);
  }
  if (announced >= 0 && size !== announced) throw refuse(`the answer ended after ${size} of ${announced} bytes`);
  return Buffer.concat(chunks, size);
}

interface Unzipped {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

const unzip = promisify<InputType, ZlibOptions, Unzipped>(
  gunzip as unknown as (
    input: InputType,
    options: ZlibOptions,
    callback: (error: Error | null, result: Unzipped) => void,
  ) => void,
);

/** @throws CatchwordError SOURCE_BODY */
async function decode(bytes: Uint8Array, headers: Headers, { maxBytes }: BodyLimits): Promise<Uint8Array> {
  const encoding = (header(headers, 'content-encoding') ?? 'identity').trim().toLowerCase();
  if (encoding === 'identity' || encoding === '') return bytes;
  if (encoding !== 'gzip' && encoding !== 'x-gzip') {
    throw refuse(
      `the answer is encoded as ${encoding.slice(0, 40)}`,
      'Only gzip was asked for; a proxy may add others.',
    );
  }
  try {
    const { buffer, engine } = await unzip(bytes, { maxOutputLength: maxBytes, info: true });
    if (engine.bytesWritten === bytes.length) return buffer;
  } catch (error) {
    throw refuse(`the answer's gzip is damaged or too large (${messageOf(error)})`, undefined, error);
  }
  throw refuse("something follows the end of the answer's gzip");
}

/** @throws CatchwordError SOURCE_BODY where it is not UTF-8, unless `keepsBytes` */
function toText(bytes: Uint8Array, keepsBytes: boolean): string {
  const isText = isUtf8(bytes);
  if (!isText && !keepsBytes) throw notUtf8();
  const text = isText
    ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
    : textOfBytes(bytes);
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/** What an answer may call itself; one that says nothing is taken at its word. */
export interface ContentTypes {
  readonly pattern: RegExp;
  readonly name: string;
  /** Whether nothing, or a text that is no page, is an answer as well; what such a one calls itself says nothing. */
  readonly lenient: boolean;
  /** Whether bytes that are not UTF-8 are kept (see `textOfBytes`); default: the answer is rejected. */
  readonly keepsBytes?: boolean;
}

export const JSON_ANSWER: ContentTypes = {
  pattern: /^(application|text)\/([\w.-]+\+)?json$/,
  name: 'JSON',
  lenient: false,
};

/** A page of the catalog: one item that is not UTF-8 must not make all the others unreadable. */
export const PAGE_ANSWER: ContentTypes = { ...JSON_ANSWER, keepsBytes: true };

/** An operation that answers in one of them has been seen to report errors in the other, and as plain text. */
export const ANY_ANSWER: ContentTypes = {
  pattern: /^(application|text)\/([\w.-]+\+)?(json|xml|plain)$/,
  name: 'JSON or XML',
  lenient: true,
};

/**
 * The text of an answer after decompression, whatever type it says it has.
 * @throws CatchwordError SOURCE_BODY
 */
export async function decodedText(
  bytes: Uint8Array,
  headers: Headers,
  limits: BodyLimits,
  keepsBytes = false,
): Promise<string> {
  const decoded = await decode(bytes, headers, limits);
  if (decoded.length > limits.maxBytes) throw refuse(`the answer is larger than ${limits.maxBytes} bytes`);
  return toText(decoded, keepsBytes);
}

/** What frameworks call `text/html` unless told otherwise: nothing, JSON, or a text without a single tag. */
function isNoPage(text: string, type: string): boolean {
  if (text.trim() === '') return true;
  return type === 'text/html' && (/^\s*["[{]/.test(text) || !/<[a-z!?/]/i.test(text));
}

/**
 * The text of an answer, ready for a parser.
 * @throws CatchwordError SOURCE_NOT_SERVICE for another content type, SOURCE_BODY
 */
export async function answerText(
  bytes: Uint8Array,
  headers: Headers,
  limits: BodyLimits,
  types: ContentTypes,
): Promise<string> {
  if (types.lenient && bytes.length === 0) return '';
  const type = header(headers, 'content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  const isExpected = type === '' || types.pattern.test(type);
  const text = isExpected || types.lenient ? await decodedText(bytes, headers, limits, types.keepsBytes) : '';
  if (!isExpected && !(types.lenient && isNoPage(text, type))) {
    throw new CatchwordError('SOURCE_NOT_SERVICE', `the answer is ${type.slice(0, 40)} in place of ${types.name}`, {
      hint: 'Check CATCHWORD_BASE_URL; a proxy or a maintenance page may stand in between.',
    });
  }
  return text;
}
