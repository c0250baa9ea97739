import { once, setMaxListeners } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CatchwordError, messageOf } from '../errors.ts';
import { type AccountControl, accountControls } from './accounts-control.ts';
import { createDirectory } from './accounts-directory.ts';
import { type Answer, errorAnswer } from './answer.ts';
import { type Catalog, createCatalog } from './catalog.ts';
import { churn } from './churn.ts';
import { control as controlled, mutate, truth } from './control.ts';
import { createNumbering } from './numbering.ts';
import type { Operation } from './operation.ts';
import { credentialOperations } from './operations/credentials.ts';
import { licenseOperations } from './operations/licenses.ts';
import { packageOperations } from './operations/packages.ts';
import { productOperations, type Shelf } from './operations/products.ts';
import { userOperations } from './operations/users.ts';
import { SANDBOX_DEFAULTS, type SandboxOptions } from './options.ts';
import type { RequestEntry, RequestLog } from './request-log.ts';
import { type Handle, serviceHandler } from './service.ts';
import { createTimeline } from './timeline.ts';
import { createTitles } from './titles.ts';

/** A running stand-in of the service, at 127.0.0.1 only. */
export interface Sandbox {
  readonly url: string;
  readonly port: number;
  readonly catalog: Catalog;
  /** Requests of the interface so far, the latest 100,000 at most, in order of arrival. */
  readonly requests: readonly Readonly<RequestEntry>[];
  /** Breaks all connections. Idempotent. */
  stop(): Promise<void>;
}

/** `/_sandbox/…`: not part of the interface; never limited, delayed, damaged or logged. */
function controlHandler(shelf: Shelf, controls: ReadonlyMap<string, AccountControl>, log: RequestLog): Handle {
  const send = (response: ServerResponse, { status, body }: Answer) => {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(body);
  };
  return async (request, target, response) => {
    const operation = `${request.method} ${target.path}`;
    const act = request.method === 'POST' ? controls.get(target.path) : undefined;
    if (act !== undefined) send(response, await controlled(act, request));
    else if (operation === 'POST /_sandbox/mutate') send(response, await mutate(shelf.catalog, request));
    else if (operation === 'GET /_sandbox/requests')
      send(response, { status: 200, body: JSON.stringify(log.entries()) });
    else if (operation === 'GET /_sandbox/truth') {
      const lines = truth(shelf, target.params);
      if ('status' in lines) return send(response, lines);
      response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
      await pipeline(Readable.from(lines), response);
    } else send(response, errorAnswer(404, `${operation} not found`));
  };
}

/**
 * @param given what differs from SANDBOX_DEFAULTS
 * @throws CatchwordError USAGE for a fault specification that cannot be read or too many products; CONFIG_INVALID where
 *   the port cannot be had
 */
export async function startSandbox(given: Partial<SandboxOptions> = {}): Promise<Sandbox> {
  const options = { ...SANDBOX_DEFAULTS, ...given };
  const { seed, details, maxPerPage, churnPerSecond, clock } = options;
  const stopped = new AbortController();
  // One listener for each request that waits.
  setMaxListeners(0, stopped.signal);
  const { signal } = stopped;
  const time = createTimeline(clock);
  const catalog = createCatalog({ ...options, clock: time });
  const shelf: Shelf = { catalog, numbering: createNumbering(seed), seed, details, maxPerPage };
  const titleOf = createTitles(shelf);
  const directory = createDirectory(options, shelf.numbering, titleOf);
  const operations: Operation[] = [
    ...productOperations(shelf),
    ...licenseOperations(directory, time),
    ...credentialOperations(directory),
    ...userOperations(directory),
    ...packageOperations({ seed, time, isProduct: (vbid) => titleOf(vbid) !== null }),
  ];
  const service = serviceHandler({ operations, tokenState: (token) => directory.tokenState(token), signal }, options);
  const control = controlHandler(shelf, accountControls(directory, options), service.log);

  const server = createServer((request, response) => {
    const [path = '/', query = ''] = (request.url ?? '/').split('?', 2);
    const handle = path.startsWith('/_sandbox/') ? control : service.handle;
    const target = { path, params: new URLSearchParams(query) };
    // A client that went away meanwhile is no concern of the sandbox.
    response.on('error', () => {});
    handle(request, target, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end(errorAnswer(500, messageOf(error)).body);
    });
  });

  server.listen(options.port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (cause) {
    throw new CatchwordError('CONFIG_INVALID', `port ${options.port} cannot be used: ${messageOf(cause)}`, {
      hint: 'Choose another with --port; 0 takes any free one.',
      cause,
    });
  }
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : options.port;
  const churning =
    churnPerSecond > 0 ? churn(catalog, { perSecond: churnPerSecond, seed, clock, signal }) : Promise.resolve();
  const closed = once(server, 'close');

  return {
    url: `http://127.0.0.1:${port}`,
    port,
    catalog,
    get requests() {
      return service.log.entries();
    },
    stop: async () => {
      stopped.abort();
      server.close();
      server.closeAllConnections();
      await Promise.all([closed, churning]);
    },
  };
}
