import { once, setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CatchwordError, messageOf } from '../errors.ts';
import { type Answer, errorAnswer, faultAnswer, sendAnswer } from './answer.ts';
import { type Catalog, createCatalog } from './catalog.ts';
import { churn } from './churn.ts';
import { mutate, truth } from './control.ts';
import { type FaultKind, parseFaults } from './faults.ts';
import { createNumbering } from './numbering.ts';
import { listProducts, readProduct, type Shelf } from './operations/products.ts';
import { SANDBOX_DEFAULTS, type SandboxOptions } from './options.ts';
import { createRateLimiter } from './rate-limit.ts';
import { createRequestLog, type RequestEntry, type RequestLog } from './request-log.ts';

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

/** The key that the service knows but that has no catalog. */
const KEY_WITHOUT_CATALOG = 'NOCATALOG';

type Refuse = (request: IncomingMessage) => Answer | null;

function authentication(options: SandboxOptions): Refuse {
  const value = (request: IncomingMessage, header: string) => request.headers[header.toLowerCase()];
  return (request) => {
    const key = value(request, options.apiKeyHeader);
    const token = value(request, options.accessTokenHeader);
    if (key === undefined) return errorAnswer(401, `${options.apiKeyHeader} is missing`);
    if (token === undefined) return errorAnswer(401, `${options.accessTokenHeader} is missing`);
    if (key === KEY_WITHOUT_CATALOG) return errorAnswer(500, 'Catalog not found');
    if (key !== options.apiKey) return errorAnswer(403, 'API key is not valid');
    return token === options.accessToken ? null : errorAnswer(403, 'Access token is not valid');
  };
}

/** A request's target, taken apart. */
interface Target {
  readonly path: string;
  readonly params: URLSearchParams;
}

type Handle = (request: IncomingMessage, target: Target, response: ServerResponse) => Promise<void>;

/** `/v4/…`: arrival is noted, then the rate limit, the headers, the latency, the fault, the operation. */
function interfaceHandler(shelf: Shelf, options: SandboxOptions, signal: AbortSignal) {
  const { clock, latencyMs, slowBodyMs } = options;
  const log = createRequestLog();
  const admit = options.rateLimit === null ? () => null : createRateLimiter(options.rateLimit);
  const refuse = authentication(options);
  const chooseFault = parseFaults(options.faults, options.seed);
  let productRequests = 0;

  function answer(request: IncomingMessage, target: Target, fault: FaultKind | null): Answer {
    const [, vbid] = /^\/v4\/products(?:\/([^/]+))?$/.exec(target.path) ?? [null, null];
    if (vbid === null) return errorAnswer(404, `${target.path} not found`);
    if (request.method !== 'GET') return errorAnswer(405, `${request.method} is not allowed`);
    return vbid === undefined ? listProducts(shelf, target.params, fault) : readProduct(shelf, vbid, target.params);
  }

  const handle: Handle = async (request, target, response) => {
    const arrivedAt = clock.now();
    const entry = log.add(arrivedAt, request.url ?? '');
    const retryAfter = admit(arrivedAt);
    const refusal = retryAfter === null ? refuse(request) : { ...errorAnswer(429, 'Too many requests'), retryAfter };
    const isList = refusal === null && target.path === '/v4/products';
    const number = isList ? ++productRequests : 0;
    const fault = isList ? chooseFault(number) : null;
    if (latencyMs > 0) await clock.sleep(latencyMs, signal);
    // Not later than the moment that the body shows, whatever compression and the network take.
    response.setHeader('Date', new Date(clock.now()).toUTCString());
    const made = refusal ?? faultAnswer(fault, number) ?? answer(request, target, fault);
    entry.status = made.status;
    const acceptEncoding = request.headers['accept-encoding'];
    await sendAnswer(response, made, { acceptEncoding, fault, slowBodyMs, clock, signal });
  };
  return { handle, log };
}

/** `/_sandbox/…`: not part of the interface; never limited, delayed, damaged or logged. */
function controlHandler(shelf: Shelf, log: RequestLog): Handle {
  const send = (response: ServerResponse, { status, body }: Answer) => {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(body);
  };
  return async (request, target, response) => {
    const operation = `${request.method} ${target.path}`;
    if (operation === 'POST /_sandbox/mutate') send(response, await mutate(shelf.catalog, request));
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
  const catalog = createCatalog(options);
  const shelf: Shelf = { catalog, numbering: createNumbering(seed), seed, details, maxPerPage };
  const service = interfaceHandler(shelf, options, signal);
  const control = controlHandler(shelf, service.log);

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
