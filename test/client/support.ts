import { onTestFinished } from 'vitest';
import { type Client, clientOf } from '../../src/client/client.ts';
import { type ClientOptions, checkOptions } from '../../src/client/options.ts';
import { type Asked, hastyClock, KEY, type Server, serve, TOKEN } from './connection.ts';

/** A status, and a body that is sent as JSON unless it is a text; `hangUp` takes the request and says nothing. */
export interface JsonReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly hangUp?: boolean;
}

/**
 * A service that answers in JSON what the test says, until the test ends.
 * @param answer from the request and how many came before it
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
  /** Milliseconds that the client has waited; nobody waited for them. */
  readonly waitedMs: () => number;
}

/** A client of a service that answers what the test says. */
export async function talk(
  answer: (asked: Asked, before: number) => JsonReply,
  options: Partial<ClientOptions> = {},
): Promise<Talk> {
  const server = await serveJson(answer);
  const clock = hastyClock();
  const start = clock.now();
  const given = { baseUrl: server.url, apiKey: KEY, accessToken: TOKEN, rateLimit: 'off', timeoutMs: 5_000 };
  const client = clientOf(checkOptions({ ...given, ...options }), clock);
  onTestFinished(() => client.close());
  return { ...server, client, waitedMs: () => clock.now() - start };
}
