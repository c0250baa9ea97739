import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorJson } from './http-error.ts';

/** The first byte of a TLS handshake. */
const TLS_HANDSHAKE = 0x16;

/** What could not be read, and Node's code. */
type BrokenRequest = { readonly code?: string; readonly rawPacket?: unknown };

/** Answers with an error as the API does, which quotes nothing, and closes the connection. */
function refuse(socket: Duplex, status: number, message: string, hint: string): void {
  if (!socket.writable) return void socket.destroy();
  const body = errorJson({ code: 'USAGE', message, hint });
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

/** Answers bytes that Node.js could not read as a request. */
export function answerBrokenRequest({ code, rawPacket }: BrokenRequest, socket: Socket): void {
  if (code === 'ECONNRESET' || socket.destroyed) return;
  const isTls = rawPacket instanceof Uint8Array && rawPacket[0] === TLS_HANDSHAKE;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    refuse(socket, 408, 'the request took too long', 'Send the whole request at once.');
  else if (code === 'HPE_HEADER_OVERFLOW')
    refuse(socket, 431, 'the address and the headers are too long', 'Send less than 16 kB.');
  else if (isTls) refuse(socket, 400, 'this port does not speak TLS', 'Use http:// rather than https://.');
  else refuse(socket, 400, 'the request is not valid HTTP', 'Send a well-formed request.');
}

/** Answers requests that Node.js would refuse without a text. */
export function answerOddRequests(server: Server): void {
  server.on('checkExpectation', ({ socket }) =>
    refuse(socket, 417, 'this expectation is not met', 'Omit the header Expect.'),
  );
  server.on('connect', (_request, socket) => {
    // Node.js removes its own listener; a reset connection would end the process.
    socket.on('error', () => {});
    refuse(socket, 405, 'this is not a proxy', 'Use GET.');
  });
}
