import { promisify } from 'node:util';
import { constants, gunzip, gzip } from 'node:zlib';
import { CatchwordError, type ErrorCode, isErrorCode, messageOf } from '@catchword/base/errors';
import { GZIP_CHUNK, MOST_UNPACKED } from '@catchword/base/gzip-chunk';
import type { FetchOutcome, FetchTask } from '@catchword/catalog/page-types';
import { pageOf } from '@catchword/catalog/validate-page';
import type { ValidatePage } from '@catchword/queue/queue-port';
import * as z from 'zod';

/*
 * Encodes outcomes as JSON, for a queue between processes. A page is sent as the compressed bytes of the response, and
 * validated again by the receiver: it is derived from them alone, so nothing can be lost or differ.
 */

const compress = promisify(gzip);
const decompress = promisify(gunzip);
const count = z.int().min(0);
const time = z.number();

const TASK = z.object({
  mirror: z.string().min(1),
  runId: count,
  pass: count,
  window: z.object({ page: z.int().min(1), perPage: z.int().min(1) }),
  from: time.nullable(),
  maxAttempts: z.int().min(1),
  filling: z.boolean().exactOptional(),
  answered: z.boolean().exactOptional(),
  vbid: z.string().exactOptional(),
});

const ERROR = z.object({
  code: z.custom<ErrorCode>(isErrorCode),
  message: z.string(),
  retryable: z.boolean(),
  hint: z.string().optional(),
  retryAfterMs: z.number().optional(),
  status: z.number().optional(),
  serviceCode: z.number().optional(),
});

const ENCODED = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('captured'),
    task: TASK,
    requests: count,
    sourceTime: time.nullable(),
    requestedAt: time,
    receivedAt: time,
    ageMs: count.exactOptional(),
    isRelayed: z.boolean().exactOptional(),
    /** The response's bytes: gzip, base64. */
    body: z.base64(),
  }),
  z.object({ kind: z.literal('failed'), task: TASK, requests: count, error: ERROR }),
]);

function parse<S extends z.ZodType>(schema: S, data: unknown): z.output<S> {
  const parsed = schema.safeParse(data);
  if (parsed.success) return parsed.data;
  throw unreadable(z.prettifyError(parsed.error));
}

function unreadable(reason: string, cause?: unknown): CatchwordError {
  return new CatchwordError('QUEUE_MISCONFIGURED', `a queued job cannot be read: ${reason}`, {
    hint: 'Run the same version in every process that shares this Redis.',
    cause,
  });
}

/** @throws CatchwordError QUEUE_MISCONFIGURED if `data` is not a task */
export function parseTask(data: unknown): FetchTask {
  return parse(TASK, data);
}

export async function encodeOutcome(outcome: FetchOutcome): Promise<z.infer<typeof ENCODED>> {
  if (outcome.kind === 'failed') return outcome;
  const { kind, task, requests, response, page } = outcome;
  const body = await compress(page.items.bytes, { level: constants.Z_BEST_SPEED, chunkSize: GZIP_CHUNK });
  return { kind, task, requests, ...response, body: body.toString('base64') };
}

/** @throws CatchwordError QUEUE_MISCONFIGURED if it is not an encoded outcome; PAGE_INVALID if its page is another one */
export async function decodeOutcome(data: unknown, validate: ValidatePage = pageOf): Promise<FetchOutcome> {
  const encoded = parse(ENCODED, data);
  if (encoded.kind === 'failed') return encoded;
  const { kind, task, requests, body, ...response } = encoded;
  const most = { maxOutputLength: MOST_UNPACKED, chunkSize: GZIP_CHUNK };
  const bytes = await decompress(Buffer.from(body, 'base64'), most).catch((error: unknown) => {
    throw unreadable(messageOf(error), error);
  });
  return { kind, task, page: await validate(new Uint8Array(bytes), task), response, requests };
}
