import { once, setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CatchwordError, messageOf } from '@catchword/base/errors';
import { hostOf, isLoopback, unbracketed } from '@catchword/base/loopback';
import { type Catalog, churn, type Mutation } from './catalog/changing-catalog.ts';
import { createScriptedReplies, type ScriptedReplies } from './control/scripted-replies.ts';
import { parseJson, readBody } from './http/body.ts';
import { formatOf, type Handle, serviceHandler } from './http/handler.ts';
import { jsonReply, Rejection, type Reply, rejectionReply } from './http/reply.ts';
import { truth } from './operations/products.ts';
import { openApiDocument } from './operations/sandbox-openapi.ts';
import { SANDBOX_DEFAULTS, type SandboxOptions } from './options.ts';
import { openState, type State } from './sandbox-state.ts';

const MAX_CONTROL_BYTES = 64 * 1024;

function send(response: ServerResponse, { status, body, contentType = 'application/json' }: Reply): void {
  response.writeHead(status, { 'Content-Type': contentType }).end(body);
}

/**
 * Rejects a request that a page of another site lets a browser send, also by a name that resolves to this machine: an
 * address cannot be such a name.
 * @throws Rejection
 */
function requireLocal({ headers: { host, origin } }: IncomingMessage): void {
  const name = unbracketed(hostOf(host));
  if ((isLoopback(name) || isIP(name) !== 0) && (origin === undefined || origin === `http://${host}`)) return;
  throw new Rejection(403, 'Controls are not for pages of other sites: use an address, such as 127.0.0.1, as the host');
}

/** Serves `/_sandbox/…`, which is not part of the interface and never limited, delayed, damaged or logged. */
function controlHandler(state: State, scripted: ScriptedReplies, requests: () => unknown): Handle {
  return async (request, { path, params }, response) => {
    requireLocal(request);
    const operation = `${request.method} ${path}`;
    const read = async () => parseJson(await readBody(request, MAX_CONTROL_BYTES));
    const control = request.method === 'POST' ? state.controls.get(path) : undefined;
    if (control !== undefined) {
      const body = await read();
      const reply = state.record({ kind: 'control', path, body }, () => control(body));
      send(response, reply);
    } else if (operation === 'POST /_sandbox/answer') {
      send(response, scripted.control(await read()));
    } else if (operation === 'GET /_sandbox/requests') {
      send(response, jsonReply(requests()));
    } else if (operation === 'GET /_sandbox/truth') {
      const lines = truth(state, params);
      response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
      await pipeline(Readable.from(lines), response);
    } else throw new Rejection(404, `${operation} not found`);
  };
}

/**
 * Starts a stand-in for the service, on 127.0.0.1 only.
 * @param given the options that differ from SANDBOX_DEFAULTS
 * @rule 7-4
 * @throws CatchwordError USAGE for an invalid fault specification or too many products; CONFIG_INVALID if the port or the
 *   journal cannot be used
 */
export async function startSandbox(given: Partial<SandboxOptions> = {}) {
  const options = { ...SANDBOX_DEFAULTS, ...given };
  const { seed, churnPerSecond, clock } = options;
  const stopped = new AbortController();
  // Each waiting request has a listener.
  setMaxListeners(0, stopped.signal);
  const { signal } = stopped;
  const state = openState(options, signal);
  const { operations, ingestions } = state;
  const mutate = (body: Mutation) =>
    state.record({ kind: 'control', path: '/_sandbox/mutate', body }, () => state.catalog.mutate(body));
  // Changes by a test are journaled too.
  const catalog: Catalog = Object.create(state.catalog, { mutate: { value: mutate } });
  const scripted = createScriptedReplies(operations);
  const service = serviceHandler(state, scripted, signal);
  const control = controlHandler(state, scripted, service.requests);
  let url = '';
  let description: string | null = null;

  const server = createServer((request, response) => {
    const [path = '/', ...queries] = (request.url ?? '/').split('?');
    if (path === '/openapi.json' && ['GET', 'HEAD'].includes(request.method ?? '')) {
      description ??= JSON.stringify(openApiDocument(operations, url, options));
      send(response, { status: 200, body: description });
      return;
    }
    const handle = path.startsWith('/_sandbox/') ? control : service.handle;
    const target = { path, params: new URLSearchParams(queries.join('?')) };
    // A client may close the connection at any time.
    response.on('error', () => {});
    handle(request, target, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else send(response, rejectionReply(formatOf(path), error));
    });
  });

  server.listen(options.port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (cause) {
    state.close();
    throw new CatchwordError('CONFIG_INVALID', `port ${options.port} cannot be used: ${messageOf(cause)}`, {
      hint: 'Choose another with --port; 0 takes any free one.',
      cause,
    });
  }
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : options.port;
  url = `http://127.0.0.1:${port}`;
  ingestions.start();
  const churning = churn(mutate, { perSecond: churnPerSecond, seed, clock, signal });
  const closed = once(server, 'close');

  return {
    url,
    port,
    catalog,
    /** Up to 100,000 latest requests of the interface, in order of arrival. */
    get requests() {
      return service.requests();
    },
    /** The main key, and the tokens of readers. A control, a reset or the journal may have replaced the configured ones. */
    apiKey: state.directory.mainKey,
    readerTokens: state.directory.readerTokens,
    /** Breaks all connections. Idempotent. */
    stop: async (): Promise<void> => {
      stopped.abort();
      server.close();
      server.closeAllConnections();
      await Promise.all([closed, churning, ingestions.settled()]);
      state.close();
    },
  };
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;
