import type { Dispatcher } from 'undici';
import api from 'undici/lib/api/index.js';
import buildConnector from 'undici/lib/core/connect.js';
import Agent from 'undici/lib/dispatcher/agent.js';
import { type HttpProxy, proxyError } from './proxy.ts';

/*
 * The parts of undici that are used. Its entry also loads `fetch`, WebSocket, caches and mocks, and makes Node.js load its
 * own copy of them: that takes 0.1 s, two thirds as long as a whole `sync` that finds nothing. These files are not part of
 * undici's promise to be compatible, so its version is fixed in package.json.
 */

type RequestOptions = Omit<Dispatcher.RequestOptions, 'headers' | 'origin'> & {
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
};

/**
 * `agent.request`: undici's entry adds it to each dispatcher, but a bundler drops what a module does besides its exports.
 * @param proxy to which the agent connects; for http, it gets the whole address, and its credentials with each request
 * @throws CatchwordError if the proxy does not accept the credentials
 */
export async function request(
  agent: Agent,
  options: RequestOptions,
  proxy: HttpProxy | null = null,
): Promise<Dispatcher.ResponseData> {
  const { origin, path, headers } = options;
  if (proxy === null || origin.startsWith('https:')) return await api.request.call(agent, options);
  const forwarded = { ...options, path: `${origin}${path}`, headers: { ...headers, ...proxy.headers } };
  const response = await api.request.call(agent, forwarded);
  if (response.statusCode !== 407) return response;
  await response.body.dump();
  throw proxyError(proxy, origin, 407);
}

export { Agent, buildConnector };
