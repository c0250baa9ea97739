import { type Client, clientOf } from 'catchword-client/client';
import { type ClientOptions, checkOptions } from 'catchword-client/options';
import { onTestFinished } from 'vitest';
import { type Asked, hastyClock, KEY, type Server, serve, TOKEN, XML_TYPE } from './connection.ts';

/** A text body is sent as it is, anything else as JSON; `hangUp` closes the connection without an answer. */
export interface JsonReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly hangUp?: boolean;
}

export function xml(body: string): JsonReply {
  return { headers: { 'content-type': XML_TYPE }, body };
}

/**
 * A service that answers in JSON until the test ends.
 * @param answer gets the request and the number of earlier ones
 */
export function serveJson(answer: (asked: Asked, before: number) => JsonReply): Promise<Server> {
  return serve((asked, before, response) => {
    const { status = 200, headers, body = {}, hangUp } = answer(asked, before);
    if (hangUp === true) {
      response.destroy();
      return null;
    }
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return { status, headers: { 'content-type': 'application/json', ...headers }, body: text };
  });
}

interface Talk extends Server {
  readonly client: Client;
  /** Milliseconds that the client has waited on its own clock. */
  readonly waitedMs: () => number;
}

/** A client, and the service that it talks to. */
export async function talk(
  answer: (asked: Asked, before: number) => JsonReply,
  options: Partial<ClientOptions> = {},
): Promise<Talk> {
  const server = await serveJson(answer);
  const clock = hastyClock();
  const start = clock.now();
  const given = { baseUrl: server.url, apiKey: KEY, accessToken: TOKEN, rateLimit: 'off', timeoutMs: 60_000 };
  const client = clientOf(checkOptions({ ...given, ...options }), clock);
  onTestFinished(() => client.close());
  return { ...server, client, waitedMs: () => clock.now() - start };
}
