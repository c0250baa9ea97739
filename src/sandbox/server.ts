import { once, setMaxListeners } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CatchwordError, messageOf } from '../errors.ts';
import type { ReaderTokens } from './accounts/api-keys.ts';
import type { Catalog, Mutation } from './catalog/catalog.ts';
import { churn } from './catalog/churn.ts';
import { type Control, readControl, truth } from './control/control.ts';
import { createArranged } from './control/scripted-answers.ts';
import type { RequestEntry, RequestLog } from './http/request-log.ts';
import { type Answer, errorAnswer, refusalAnswer } from './http/response.ts';
import { formatOf, type Handle, serviceHandler } from './http-handler.ts';
import { openApiDocument } from './operations/openapi.ts';
import { SANDBOX_DEFAULTS, type SandboxOptions } from './options.ts';
import { type Keeping, keepHoldings } from './replay.ts';

/** A running stand-in of the service, at 127.0.0.1 only. */
export interface Sandbox {
  readonly url: string;
  readonly port: number;
  readonly catalog: Catalog;
  /** Requests of the interface so far, the latest 100,000 at most, in order of arrival. */
  readonly requests: readonly Readonly<RequestEntry>[];
  /** The main key: that of the options, or the one that a control or the journal replaced it with. */
  apiKey(): string;
  /** What a journal holds, and a reset, replaces the tokens of the options. */
  readerTokens(): ReaderTokens;
  /** Breaks all connections. Idempotent. */
  stop(): Promise<void>;
}

/** `/_sandbox/…`: not part of the interface; never limited, delayed, damaged or logged. */
function controlHandler({ holdings: { shelf, controls }, record }: Keeping, arrange: Control, log: RequestLog): Handle {
  const send = (response: ServerResponse, { status, body }: Answer) => {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(body);
  };
  return async (request, target, response) => {
    const { path } = target;
    const operation = `${request.method} ${path}`;
    const act = request.method === 'POST' ? controls.get(path) : undefined;
    if (act !== undefined) {
      const read = await readControl(request);
      if ('status' in read) return send(response, read);
      send(
        response,
        record({ kind: 'control', path, body: read.body }, () => act(read.body)),
      );
    } else if (operation === 'POST /_sandbox/answer') {
      const read = await readControl(request);
      send(response, 'status' in read ? read : arrange(read.body));
    } else if (operation === 'GET /_sandbox/requests') {
      send(response, { status: 200, body: JSON.stringify(log.entries()) });
    } else if (operation === 'GET /_sandbox/truth') {
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
  const { seed, churnPerSecond, clock } = options;
  const stopped = new AbortController();
  // One listener for each request that waits.
  setMaxListeners(0, stopped.signal);
  const { signal } = stopped;
  const keeping = keepHoldings(options, clock, signal);
  const { holdings, record } = keeping;
  const { ingestions } = holdings;
  const mutate = (body: Mutation) =>
    record({ kind: 'control', path: '/_sandbox/mutate', body }, () => holdings.shelf.catalog.mutate(body));
  // What tests change by hand is kept as well.
  const catalog: Catalog = Object.create(holdings.shelf.catalog, { mutate: { value: mutate } });
  const arranged = createArranged(holdings.operations);
  const service = serviceHandler({ ...holdings, record, arranged, signal }, options);
  const control = controlHandler(keeping, arranged.control, service.log);
  let url = '';
  let described: string | null = null;
  const description = () => {
    described ??= JSON.stringify(openApiDocument(holdings.operations, { ...options, url }));
    return described;
  };

  const server = createServer((request, response) => {
    const [path = '/', ...queries] = (request.url ?? '/').split('?');
    // A question mark in the query is a part of it.
    const query = queries.join('?');
    const handle = path.startsWith('/_sandbox/') ? control : service.handle;
    if (path === '/openapi.json' && ['GET', 'HEAD'].includes(request.method ?? '')) {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(description());
      return;
    }
    const target = { path, params: new URLSearchParams(query) };
    // A client that went away meanwhile is no concern of the sandbox.
    response.on('error', () => {});
    handle(request, target, response).catch((error: unknown) => {
      if (response.headersSent) {
        response.destroy();
        return;
      }
      const { status, body, contentType } = refusalAnswer(formatOf(path), 500, messageOf(error));
      response.writeHead(status, { 'Content-Type': contentType ?? 'application/json' }).end(body);
    });
  });

  server.listen(options.port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (cause) {
    keeping.close();
    throw new CatchwordError('CONFIG_INVALID', `port ${options.port} cannot be used: ${messageOf(cause)}`, {
      hint: 'Choose another with --port; 0 takes any free one.',
      cause,
    });
  }
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : options.port;
  url = `http://127.0.0.1:${port}`;
  ingestions.start();
  const churning =
    churnPerSecond > 0 ? churn(mutate, { perSecond: churnPerSecond, seed, clock, signal }) : Promise.resolve();
  const closed = once(server, 'close');

  return {
    url,
    port,
    catalog,
    get requests() {
      return service.log.entries();
    },
    apiKey: () => holdings.keys.main(),
    readerTokens: () => holdings.readerTokens(),
    stop: async () => {
      stopped.abort();
      server.close();
      server.closeAllConnections();
      await Promise.all([closed, churning, ingestions.settled()]);
      keeping.close();
    },
  };
}
