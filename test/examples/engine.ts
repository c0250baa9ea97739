import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { startProxy } from '@catchword/testing/proxy';
import type { Received, SinkTarget } from '../../src/contract/checks.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples/', import.meta.url));

/** A request as the double of an engine gets it. */
export interface Asked {
  readonly method: string;
  /** The parts of the path, decoded. */
  readonly path: readonly string[];
  readonly query: ReadonlyMap<string, string>;
  /** Without what follows the semicolon. */
  readonly type: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

export interface Answer {
  readonly status: number;
  /** A text is sent as it is, anything else as JSON. */
  readonly body: unknown;
}

/** The double of an engine: it refuses what the engine's documents say that it refuses. */
export interface Engine {
  readonly answer: (asked: Asked) => Answer;
  /** The products that a search could find, by key. */
  readonly products: () => ReadonlyMap<string, unknown>;
  /** The query of the module's address; PORT stands for the engine's. */
  readonly options: string;
  /** Of an engine that keeps events. */
  readonly received?: () => Received;
  /** Changes a document (P1), deletes one (P2), adds one (EXTRA) and copies one (P3), as another program would. */
  readonly tamper?: () => void;
  readonly module: string;
  readonly secret: string;
}

/** The products of documents, without the members that a module adds. */
export function productsIn(documents: readonly Record<string, unknown>[], added: readonly string[]) {
  const products = documents.map((document) =>
    Object.fromEntries(Object.entries(document).filter(([name]) => !added.includes(name))),
  );
  return new Map(products.map((product) => [String(product.vbid), product]));
}

export type Interfere = (asked: Asked) => Answer | null;

/** Serves an engine behind a port that can be cut. */
export async function serveEngine(engine: Engine) {
  const asked: Asked[] = [];
  let interfere: Interfere = () => null;
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = '';
    for await (const piece of request.setEncoding('utf8')) body += piece;
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://engine');
    const { method = '', headers } = request;
    const type = (headers['content-type'] ?? '').split(';')[0] ?? '';
    const path = pathname.slice(1).split('/').map(decodeURIComponent);
    const one = { method, path, query: new Map(searchParams), type, headers, body };
    asked.push(one);
    const { status, body: answer } = interfere(one) ?? engine.answer(one);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  };
  const server = createServer((request, response) => void receive(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy = await startProxy((server.address() as AddressInfo).port);
  const target: SinkTarget = {
    url: `module:${EXAMPLES}${engine.module}?${engine.options.replace('PORT', String(proxy.port))}`,
    secret: engine.secret,
    read: async () => engine.received?.() ?? { seqs: null, products: engine.products() },
    interrupt: proxy.cut,
    restore: proxy.restore,
    remove: async () => {
      await proxy.cut();
      server.closeAllConnections();
      server.close();
    },
  };
  return {
    ...target,
    asked,
    /** Answers instead of the engine, where `next` does not return null. */
    interfere: (next: Interfere): void => {
      interfere = next;
    },
  };
}
