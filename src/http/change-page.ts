import type { FastifyReply } from 'fastify';
import { errorFields } from '../base/log.ts';
import { sendError } from './http-error.ts';
import { createWriter, type EndCode, type RouteParts } from './response-writer.ts';
import { OVERLOADED } from './slow-readers.ts';

/**
 * Sends JSON that is made while it is taken, so that a client that takes nothing keeps only a piece in memory. A client
 * that is too slow, or whose page cannot be read to its end, sees a broken connection, not the end of a page.
 * @throws what the first piece throws; then nothing was sent
 */
export async function sendPieces(
  reply: FastifyReply,
  pieces: Iterator<string, void>,
  parts: RouteParts,
): Promise<void> {
  const { raw, request } = reply;
  if (parts.waiting.isFull()) return void sendError(reply, OVERLOADED);
  let piece = pieces.next();
  reply.type('application/json; charset=utf-8').hijack();
  raw.writeHead(200, reply.getHeaders() as Record<string, string>);
  const ending = new AbortController();
  const { signal } = ending;
  const writer = createWriter(raw, ending, parts);
  try {
    while (!piece.done && !signal.aborted && request.method !== 'HEAD') {
      await writer.write(piece.value);
      await parts.waiting.turn();
      if (!signal.aborted) piece = pieces.next();
    }
  } catch (error) {
    parts.log.error(errorFields(error), 'a page could not be read to its end');
    ending.abort('INTERNAL' satisfies EndCode);
  }
  if (!signal.aborted) raw.end();
  else request.raw.socket.destroy();
}
