import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { SandboxOptions } from '../options.ts';
import type { FaultKind } from './faults.ts';
import type { Reply } from './reply.ts';

type Pace = Pick<SandboxOptions, 'clock' | 'slowBodyMs'> & { readonly signal: AbortSignal };

const compress = promisify(gzip);
const SLOW_BODY_PIECES = 20;

/** Whether a client accepts gzip: the header names it, and not with `q=0`. */
function acceptsGzip(header: string | string[] | undefined): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(header ?? ''));
}

function firstHalf(body: Buffer): Buffer {
  return body.subarray(0, body.length >>> 1);
}

/** Resolves when the piece is written, or when the client has closed the connection. */
function write(response: ServerResponse, piece: Buffer): Promise<void> {
  return new Promise((resolve) => response.write(piece, () => resolve()));
}

async function trickle(response: ServerResponse, body: Buffer, { clock, slowBodyMs, signal }: Pace): Promise<void> {
  const size = Math.ceil(body.length / SLOW_BODY_PIECES);
  for (let start = 0; start < body.length && !response.destroyed; start += size) {
    await write(response, body.subarray(start, start + size));
    await clock.sleep(slowBodyMs / SLOW_BODY_PIECES, signal);
  }
  response.end();
}

/** Compresses the body if the client accepts that, damages it if the fault is of a body on its way, and sends it. */
export async function sendReply(response: ServerResponse, reply: Reply, fault: FaultKind | null, pace: Pace) {
  // A proxy that breaks gzip may have added it without being asked.
  const zipped = acceptsGzip(response.req.headers['accept-encoding']) || fault === 'truncated-gzip';
  const plain = Buffer.from(reply.body);
  const whole = fault === 'truncated-json' ? firstHalf(plain) : plain;
  const encoded = zipped ? await compress(whole, { level: 1 }) : whole;
  const body = fault === 'truncated-gzip' ? firstHalf(encoded) : encoded;
  response.writeHead(reply.status, {
    'Content-Type': reply.contentType ?? 'application/json',
    'Content-Length': body.length,
    ...(zipped && { 'Content-Encoding': 'gzip' }),
    ...(reply.retryAfter !== undefined && { 'Retry-After': reply.retryAfter }),
  });
  if (fault === 'reset') {
    await write(response, firstHalf(body));
    response.socket?.resetAndDestroy();
  } else if (fault === 'slow-body') await trickle(response, body, pace);
  else response.end(body);
}
