import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** The first byte of a TLS handshake. */
const TLS_HANDSHAKE = 0x16;

interface BrokenRequest {
  readonly code?: string;
  /** The bytes that could not be read. */
  readonly rawPacket?: unknown;
}

interface Problem {
  readonly status: number;
  readonly message: string;
  readonly hint: string;
}

function problemOf({ code, rawPacket }: BrokenRequest): Problem {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return { status: 408, message: 'the request took too long', hint: 'Send the whole request at once.' };
  if (code === 'HPE_HEADER_OVERFLOW')
    return { status: 431, message: 'the address and the headers are too long', hint: 'Send less than 16 kB.' };
  if (rawPacket instanceof Uint8Array && rawPacket[0] === TLS_HANDSHAKE)
    return { status: 400, message: 'this port does not speak TLS', hint: 'Use http:// rather than https://.' };
  return { status: 400, message: 'the request is not valid HTTP', hint: 'Send a well-formed request.' };
}

/** Answers with an error like those of the API, which quotes nothing, and closes the connection. */
function refuse(socket: Duplex, { status, message, hint }: Problem): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
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

/** Answers what is not a request. */
export function answerBrokenRequest(error: BrokenRequest, socket: Socket): void {
  if (error.code !== 'ECONNRESET' && !socket.destroyed) refuse(socket, problemOf(error));
}

/** Answers requests that Node.js would refuse without a text. */
export function answerOddRequests(server: Server): void {
  server.on('checkExpectation', ({ socket }) =>
    refuse(socket, { status: 417, message: 'this expectation is not met', hint: 'Omit the header Expect.' }),
  );
  server.on('connect', (_request, socket) => {
    // Node.js removes its own listener; a reset connection would end the process.
    socket.on('error', () => {});
    refuse(socket, { status: 405, message: 'this is not a proxy', hint: 'Use GET.' });
  });
}
