import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';

/** The first byte of a TLS handshake. */
const TLS_HANDSHAKE = 0x16;

interface BrokenRequest {
  readonly code?: string;
  /** The bytes that could not be read. */
  readonly rawPacket?: unknown;
}

function problemOf({ code, rawPacket }: BrokenRequest): { status: number; message: string; hint: string } {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return { status: 408, message: 'the request took too long', hint: 'Send the whole request at once.' };
  if (code === 'HPE_HEADER_OVERFLOW')
    return { status: 431, message: 'the address and the headers are too long', hint: 'Send less than 16 kB.' };
  if (rawPacket instanceof Uint8Array && rawPacket[0] === TLS_HANDSHAKE)
    return { status: 400, message: 'this port does not speak TLS', hint: 'Use http:// rather than https://.' };
  return { status: 400, message: 'the request is not valid HTTP', hint: 'Send a well-formed request.' };
}

/** Answers what is not a request with an error like those of the API, which quotes nothing, and closes the connection. */
export function answerBrokenRequest(error: BrokenRequest, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const { status, message, hint } = problemOf(error);
  const body = JSON.stringify({ error: { code: 'USAGE', message, hint } });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'x-content-type-options: nosniff',
    'cache-control: no-store',
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
