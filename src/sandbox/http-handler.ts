import type { IncomingMessage, ServerResponse } from 'node:http';
import { MAX_XML_CHARS } from '../xml/gate.ts';
import type { Arranged } from './control/scripted-answers.ts';
import { authentication, type TokenState } from './http/authentication.ts';
import { type FaultKind, parseFaults } from './http/faults.ts';
import type { Operation } from './http/operation.ts';
import { createRateLimiter } from './http/rate-limit.ts';
import { createRequestLog, type RequestLog } from './http/request-log.ts';
import { type Answer, errorAnswer, faultAnswer, refusalAnswer, sendAnswer } from './http/response.ts';
import { createRouter } from './http/router.ts';
import { headerRefusal } from './http/strict-headers.ts';
import type { RecordChange } from './journal/change.ts';
import type { Keys } from './keys.ts';
import type { SandboxOptions } from './options.ts';
import { readBody } from './read-body.ts';

/** A request's target, taken apart. */
export interface Target {
  readonly path: string;
  readonly params: URLSearchParams;
}

export type Handle = (request: IncomingMessage, target: Target, response: ServerResponse) => Promise<void>;

/** Interface, section 9, rule 2; for a path that no operation has. */
export function formatOf(path: string): 'json' | 'xml' {
  return path.endsWith('.xml') ? 'xml' : 'json';
}

/** UTF-8 takes this much for a unit of UTF-16, which is what a text's length counts. */
const MAX_BYTES_PER_CHAR = 3;

/** For safety: what the gate takes of XML, whatever characters it holds; a package of fifty thousand products is 1 MiB. */
const MAX_BODY_BYTES = { xml: MAX_BYTES_PER_CHAR * MAX_XML_CHARS, json: 4 * 2 ** 20 } as const;

/** What the interface's requests are served with, besides the options. */
export interface Service {
  readonly operations: readonly Operation[];
  readonly keys: Pick<Keys, 'ownerOf'>;
  readonly tokenState: (token: string) => TokenState;
  readonly record: RecordChange;
  readonly arranged: Pick<Arranged, 'due'>;
  readonly signal: AbortSignal;
}

/** A request that waits to be answered: by a refusal, or by an operation on which a fault may strike. */
type Pending =
  | { readonly refusal: Answer }
  | { readonly fault: FaultKind | null; readonly number: number; operate(): Answer };

/**
 * The operations of the interface over HTTP. In this order: arrival is noted, then the rate limit, the route, the
 * headers, what was arranged, the body, the latency, the fault, the operation.
 */
export function serviceHandler(service: Service, options: SandboxOptions): { handle: Handle; log: RequestLog } {
  const { clock, latencyMs, slowBodyMs } = options;
  const { record, arranged, signal } = service;
  const log = createRequestLog();
  const admit = options.rateLimit === null ? () => null : createRateLimiter(options.rateLimit);
  const route = createRouter(service.operations);
  const authenticate = authentication(options, service.keys, service.tokenState);
  const chooseFault = parseFaults(options.faults, options.seed);
  let struck = 0;

  async function pendingFor(request: IncomingMessage, { path, params }: Target): Promise<Pending> {
    const method = request.method ?? 'GET';
    const found = route(method, path);
    if ('status' in found) {
      const format = formatOf(path);
      const caller = authenticate(request.headers, { token: false, format });
      if ('status' in caller) return { refusal: caller };
      const message = found.status === 404 ? `${path} not found` : `${method} is not allowed`;
      return { refusal: refusalAnswer(format, found.status, message) };
    }
    const { operation, values } = found;
    const caller = authenticate(request.headers, operation);
    if ('status' in caller) return { refusal: caller };
    const refusal = (options.strict ? headerRefusal(request.headers, operation) : null) ?? arranged.due(operation);
    if (refusal !== null) return { refusal };
    const number = operation.faults ? ++struck : 0;
    const fault = operation.faults ? chooseFault(number) : null;
    const maxBytes = MAX_BODY_BYTES[operation.format];
    const body = await readBody(request, maxBytes);
    if (body === null) return { refusal: refusalAnswer(operation.format, 413, `at most ${maxBytes} bytes are taken`) };
    const operate = () => operation.operate({ values, params, body, ...caller, fault });
    if (!(operation.changes ?? method !== 'GET')) return { fault, number, operate };
    const kept = operation.kept?.(body) ?? body;
    const target = { method, path, query: params.toString() };
    const privateCallbacks = options.allowPrivateCallbacks;
    const change = { kind: 'request', ...target, ...caller, body: kept, privateCallbacks } as const;
    return { fault, number, operate: () => record(change, operate) };
  }

  const handle: Handle = async (request, target, response) => {
    const arrivedAt = clock.now();
    const entry = log.add(arrivedAt, request.url ?? '');
    const retryAfter = admit(arrivedAt);
    const pending: Pending =
      retryAfter === null
        ? await pendingFor(request, target)
        : { refusal: { ...errorAnswer(429, 'Too many requests'), retryAfter } };
    if (latencyMs > 0) await clock.sleep(latencyMs, signal);
    // Not later than the moment that the body shows, whatever compression and the network take.
    response.setHeader('Date', new Date(clock.now()).toUTCString());
    const fault = 'refusal' in pending ? null : pending.fault;
    const answer = 'refusal' in pending ? pending.refusal : (faultAnswer(fault, pending.number) ?? pending.operate());
    entry.status = answer.status;
    const acceptEncoding = request.headers['accept-encoding'];
    await sendAnswer(response, answer, { acceptEncoding, fault, slowBodyMs, clock, signal });
  };
  return { handle, log };
}
