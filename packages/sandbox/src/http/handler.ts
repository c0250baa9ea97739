import type { IncomingMessage, ServerResponse } from 'node:http';
import { MAX_XML_CHARS } from '@catchword/xml/read';
import type { ScriptedReplies } from '../control/scripted-replies.ts';
import type { State } from '../sandbox-state.ts';
import { authentication, checkStrictHeader } from './authentication.ts';
import { readBody } from './body.ts';
import { type FaultKind, faultReply, parseFaults } from './faults.ts';
import type { Operation } from './operation.ts';
import { createRateLimiter } from './rate-limit.ts';
import { Rejection, type Reply, rejectionReply } from './reply.ts';
import type { Route } from './router.ts';
import { sendReply } from './send-reply.ts';

/** The path and query of a request. @rule 9-3..4 */
export interface Target {
  readonly path: string;
  readonly params: URLSearchParams;
}

export type Handle = (request: IncomingMessage, target: Target, response: ServerResponse) => Promise<void>;

/** The format of errors for a path that no operation has: interface, section 9, rule 2. */
export function formatOf(path: string): Operation['format'] {
  return path.endsWith('.xml') ? 'xml' : 'json';
}

/** A request of the interface. Control requests are not logged. */
export interface RequestEntry {
  /** Time of arrival, milliseconds since 1970. */
  readonly at: number;
  readonly path: string;
  /** Status of the reply; 0 until there is one. */
  status: number;
}

const MAX_ENTRIES = 100_000;

/** A unit of UTF-16 takes up to 3 bytes in UTF-8. A package of fifty thousand products takes less than 1 MiB. */
const MAX_BODY_BYTES = { xml: 3 * MAX_XML_CHARS, json: 2 ** 20 } as const;

/**
 * Serves the operations of the interface over HTTP, in this order: log the arrival, rate limit, wait for the latency,
 * route, authenticate, check headers, scripted reply, read the body, fault, run the operation.
 */
export function serviceHandler(state: State, scripted: Pick<ScriptedReplies, 'next'>, signal: AbortSignal) {
  const { options, route, record } = state;
  const { clock, latencyMs } = options;
  let log: RequestEntry[] = [];
  const admit = options.rateLimit === null ? () => null : createRateLimiter(options.rateLimit);
  const authenticate = authentication(options, state.directory);
  const chooseFault = parseFaults(options.faults, options.seed);
  let faulty = 0;

  /** @throws Rejection */
  async function serve(request: IncomingMessage, { path, params }: Target, found: Route) {
    const method = request.method ?? 'GET';
    if ('status' in found) {
      authenticate(request.headers, { token: false, format: formatOf(path) });
      throw new Rejection(found.status, found.status === 404 ? `${path} not found` : `${method} is not allowed`);
    }
    const { values, operation } = found;
    const caller = authenticate(request.headers, operation);
    if (options.strict) checkStrictHeader(request.headers, operation);
    const scriptedReply = scripted.next(operation);
    if (scriptedReply !== null) return { reply: scriptedReply, fault: null };
    const fault = operation.faults ? chooseFault(++faulty) : null;
    const damaged = faultReply(fault, faulty);
    if (damaged !== null) return { reply: damaged, fault };
    const body = await readBody(request, MAX_BODY_BYTES[operation.format]);
    const run = () => operation.run({ values, params, body, ...caller, fault });
    if (!(operation.changes ?? method !== 'GET')) return { reply: run(), fault };
    const kept = (operation.redact?.(body) ?? body).toString();
    const change = { kind: 'request', method, path, query: params.toString(), ...caller, body: kept } as const;
    return { reply: record(change, run), fault };
  }

  const handle: Handle = async (request, target, response) => {
    const arrivedAt = clock.now();
    const entry: RequestEntry = { at: arrivedAt, path: request.url ?? '', status: 0 };
    // Growing to twice the size drops old entries rarely and all at once.
    if (log.length >= 2 * MAX_ENTRIES) log = log.slice(-MAX_ENTRIES);
    log.push(entry);
    const retryAfter = admit(arrivedAt);
    if (latencyMs > 0) await clock.sleep(latencyMs, signal);
    // Not later than the moment that the body shows, however long compression and the network take.
    response.setHeader('Date', new Date(clock.now()).toUTCString());
    const found = route(request.method ?? 'GET', target.path);
    let reply: Reply;
    let fault: FaultKind | null = null;
    try {
      if (retryAfter !== null) throw new Rejection(429, 'Too many requests', { retryAfter });
      ({ reply, fault } = await serve(request, target, found));
    } catch (error) {
      const format = 'operation' in found ? found.operation.format : formatOf(target.path);
      reply = rejectionReply(format, error);
    }
    entry.status = reply.status;
    await sendReply(response, reply, fault, { ...options, signal });
  };
  const requests = (): readonly Readonly<RequestEntry>[] => log.slice(-MAX_ENTRIES);
  return { handle, requests };
}
