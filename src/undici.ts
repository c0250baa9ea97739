import api from 'undici/lib/api/index.js';
import buildConnector from 'undici/lib/core/connect.js';
import Agent from 'undici/lib/dispatcher/agent.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';

/*
 * The parts of undici that are used. Its entry also loads `fetch`, WebSocket, caches and mocks, and makes Node.js load its
 * own copy of them: that takes 0.1 s, a fifth of a `sync` that finds nothing. These files are not part of undici's
 * promise to be compatible, so its version is fixed in package.json.
 */

// As the entry does.
Object.assign(Dispatcher.prototype, api);

export { Agent, buildConnector };
