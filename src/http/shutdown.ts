import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { STOPPING, sendError } from './http-error.ts';
import { isStream } from './sse/sse-refusal.ts';

function received(socket: Socket, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    response.once('close', resolve);
    socket.once('close', resolve);
  });
}

/**
 * Tracks open responses: for Node.js a response is finished once it is handed to the socket, even if the client has not
 * received it, and closing the server then breaks the connection.
 * @returns a function that rejects further requests on open connections, except for a stream: that ends by itself, and a
 *   standard EventSource does not survive an error status. It resolves when every open response was received by its
 *   client, or its connection is gone.
 */
export function addDrain(app: FastifyInstance): () => Promise<void> {
  // The newest response of a connection is the last one received. A response that waits behind another one is not
  // notified when the connection breaks.
  const newest = new Map<Socket, ServerResponse>();
  let stopping = false;
  app.server.on('connection', (socket) => socket.once('close', () => newest.delete(socket)));
  app.server.on('request', ({ socket }, response) => newest.set(socket, response));
  app.addHook('onRequest', async (request, reply) =>
    stopping && !isStream(request) ? sendError(reply, STOPPING) : undefined,
  );

  return async () => {
    stopping = true;
    const open = [...newest].filter(([, response]) => !response.closed);
    await Promise.all(open.map(([socket, response]) => received(socket, response)));
  };
}
