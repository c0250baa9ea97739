import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { type Refusal, refuse } from './http-error.ts';
import { STREAM_PATH } from './sse-route.ts';

const STOPPING: Refusal = {
  code: 'STOPPING',
  message: 'catchword is stopping',
  hint: 'Retry in a few seconds.',
  headers: { 'retry-after': '10', connection: 'close' },
};

export interface Answers {
  /**
   * Refuses every request from now on that comes over an open connection, but those for a stream: that ends by itself, and
   * a standard EventSource does not survive a refusal. Resolves when each answer under way was taken, or its connection
   * is gone.
   */
  stop(): Promise<void>;
}

function taken(socket: Socket, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    response.once('close', resolve);
    socket.once('close', resolve);
  });
}

/**
 * Watches what is answered: Node counts an answer as finished that was handed over, although nobody has taken it, and
 * breaks its connection where the server closes.
 */
export function addAnswers(app: FastifyInstance): Answers {
  // The newest of a connection, which is taken last: one that waits behind another hears nothing of a broken connection.
  const newest = new Map<Socket, ServerResponse>();
  let stopping = false;
  app.server.on('connection', (socket) => socket.once('close', () => newest.delete(socket)));
  app.server.on('request', ({ socket }, response) => newest.set(socket, response));
  app.addHook('onRequest', async (request, reply) =>
    stopping && request.routeOptions.url !== STREAM_PATH ? refuse(reply, STOPPING) : undefined,
  );

  return {
    stop: async () => {
      stopping = true;
      const underWay = [...newest].filter(([, response]) => !response.closed);
      await Promise.all(underWay.map(([socket, response]) => taken(socket, response)));
    },
  };
}
