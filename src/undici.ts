import type { Dispatcher } from 'undici';
import api from 'undici/lib/api/index.js';
import buildConnector from 'undici/lib/core/connect.js';
import Agent from 'undici/lib/dispatcher/agent.js';

/*
 * The parts of undici that are used. Its entry also loads `fetch`, WebSocket, caches and mocks, and makes Node.js load its
 * own copy of them: that takes 0.1 s, two thirds as long as a whole `sync` that finds nothing. These files are not part of
 * undici's promise to be compatible, so its version is fixed in package.json.
 */

/** `agent.request`: undici's entry adds it to each dispatcher, but a bundler drops what a module does besides its exports. */
export function request(agent: Agent, options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> {
  return api.request.call(agent, options);
}

export { Agent, buildConnector };
