import type { IncomingMessage, ServerResponse } from 'node:http';
import { MAX_XML_CHARS } from '../../xml/gate.ts';
import type { ScriptedReplies } from '../control/scripted-replies.ts';
import type { RecordChange } from '../journal/change.ts';
import type { SandboxOptions } from '../options.ts';
import { authentication, type Credentials } from './authentication.ts';
import { readBody } from './body.ts';
import { type FaultKind, faultReply, parseFaults } from './faults.ts';
import type { Operation } from './operation.ts';
import { createRateLimiter } from './rate-limit.ts';
import { Rejection, type Reply, rejectionReply } from './reply.ts';
import { createRequestLog, type RequestLog } from './request-log.ts';
import { createRouter } from './router.ts';
import { sendReply } from './send-reply.ts';
import { checkStrictHeader } from './strict-headers.ts';

/** The path and query of a request. */
export interface Target {
  readonly path: string;
  readonly params: URLSearchParams;
}

export type Handle = (request: IncomingMessage, target: Target, response: ServerResponse) => Promise<void>;

/** The format of errors for a path that no operation has: interface, section 9, rule 2. */
export function formatOf(path: string): Operation['format'] {
  return path.endsWith('.xml') ? 'xml' : 'json';
}

/** A unit of UTF-16 takes up to 3 bytes in UTF-8. A package of fifty thousand products takes less than 1 MiB. */
const MAX_BODY_BYTES = { xml: 3 * MAX_XML_CHARS, json: 2 ** 20 } as const;

export interface Service {
  readonly operations: readonly Operation[];
  readonly credentials: Credentials;
  readonly record: RecordChange;
  readonly scripted: Pick<ScriptedReplies, 'next'>;
  readonly signal: AbortSignal;
}

/** A request that is ready to be run, or was already rejected. */
interface Prepared {
  readonly fault: FaultKind | null;
  /** @throws Rejection */
  run(): Reply;
}

/**
 * Serves the operations of the interface over HTTP, in this order: log the arrival, rate limit, route, authenticate,
 * check headers, scripted reply, read the body, wait for the latency, fault, run the operation.
 */
export function serviceHandler(service: Service, options: SandboxOptions): { handle: Handle; log: RequestLog } {
  const { clock, latencyMs, slowBodyMs } = options;
  const { record, scripted, signal } = service;
  const log = createRequestLog();
  const admit = options.rateLimit === null ? () => null : createRateLimiter(options.rateLimit);
  const route = createRouter(service.operations);
  const authenticate = authentication(options, service.credentials);
  const chooseFault = parseFaults(options.faults, options.seed);
  let faulty = 0;

  /** @throws Rejection */
  async function prepare(request: IncomingMessage, operation: Operation, call: Call): Promise<Prepared> {
    const { method, path, params, values } = call;
    const caller = authenticate(request.headers, operation);
    if (options.strict) checkStrictHeader(request.headers, operation);
    const reply = scripted.next(operation);
    if (reply !== null) return { fault: null, run: () => reply };
    const number = operation.faults ? ++faulty : 0;
    const fault = operation.faults ? chooseFault(number) : null;
    const body = await readBody(request, MAX_BODY_BYTES[operation.format]);
    const run = () => faultReply(fault, number) ?? operation.run({ values, params, body, ...caller, fault });
    if (!(operation.changes ?? method !== 'GET')) return { fault, run };
    const kept = operation.redact?.(body) ?? body;
    const change = { kind: 'request', method, path, query: params.toString(), ...caller, body: kept } as const;
    return { fault, run: () => record(change, run) };
  }

  const handle: Handle = async (request, { path, params }, response) => {
    const arrivedAt = clock.now();
    const entry = log.add(arrivedAt, request.url ?? '');
    const retryAfter = admit(arrivedAt);
    const method = request.method ?? 'GET';
    const found = route(method, path);
    const format = 'operation' in found ? found.operation.format : formatOf(path);
    const rejected = (error: unknown): Reply => {
      if (error instanceof Rejection) return rejectionReply(format, error);
      throw error;
    };

    async function prepared(): Promise<Prepared> {
      if (retryAfter !== null) throw new Rejection(429, 'Too many requests', { retryAfter });
      if ('operation' in found)
        return prepare(request, found.operation, { method, path, params, values: found.values });
      authenticate(request.headers, { token: false, format });
      throw new Rejection(found.status, found.status === 404 ? `${path} not found` : `${method} is not allowed`);
    }

    const { fault, run } = await prepared().catch((error: unknown) => {
      const reply = rejected(error);
      return { fault: null, run: () => reply };
    });
    if (latencyMs > 0) await clock.sleep(latencyMs, signal);
    // Not later than the moment that the body shows, however long compression and the network take.
    response.setHeader('Date', new Date(clock.now()).toUTCString());
    let reply: Reply;
    try {
      reply = run();
    } catch (error) {
      reply = rejected(error);
    }
    entry.status = reply.status;
    const acceptEncoding = request.headers['accept-encoding'];
    await sendReply(response, reply, { acceptEncoding, fault, slowBodyMs, clock, signal });
  };
  return { handle, log };
}

/** How an operation was called. */
interface Call extends Target {
  readonly method: string;
  readonly values: Readonly<Record<string, string>>;
}
