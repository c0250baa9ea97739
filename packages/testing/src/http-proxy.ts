import { createServer, type RequestListener, request } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { listen } from './listen.ts';

export interface AskedOfProxy {
  /** `CONNECT books.example:443`, `GET http://books.example/x`. */
  readonly line: string;
  readonly authorization: string | undefined;
}

/**
 * Starts a proxy that takes every host for a server on this machine: `CONNECT`, and requests with a whole address.
 * @param to the port of that server
 * @param refuse the status with which it answers instead; null: it never answers
 * @param secure the certificate and key with which it speaks TLS
 */
export async function startHttpProxy(
  to: number,
  refuse?: number | null,
  secure?: { readonly cert: string; readonly key: string },
  host = '127.0.0.1',
) {
  const asked: AskedOfProxy[] = [];
  const sockets = new Set<Socket>();
  const note = (method = '', url = '', authorization?: string): void => {
    asked.push({ line: `${method} ${url}`, authorization });
  };
  const forward: RequestListener = (given, response) => {
    note(given.method, given.url, given.headers['proxy-authorization']);
    if (refuse !== undefined) {
      if (refuse !== null) response.writeHead(refuse).end(given.headers['proxy-authorization']);
      return;
    }
    const { pathname, search } = new URL(given.url ?? '');
    const { 'proxy-authorization': _, ...headers } = given.headers;
    const options = { host: '127.0.0.1', port: to, method: given.method, path: `${pathname}${search}`, headers };
    const forwarded = request(options, (answer) => {
      answer.pipe(response.writeHead(answer.statusCode ?? 500, answer.headers));
    });
    given.pipe(forwarded.on('error', () => response.destroy()));
  };
  const server = secure === undefined ? createServer(forward) : createSecureServer(secure, forward);
  server.on('connect', (given, client: Socket) => {
    note('CONNECT', given.url, given.headers['proxy-authorization']);
    sockets.add(client.on('error', () => {}));
    if (refuse === null) return;
    if (refuse !== undefined) {
      client.end(`HTTP/1.1 ${refuse} No\r\n\r\n${given.headers['proxy-authorization']}`);
      return;
    }
    const upstream = connect(to, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(client).pipe(upstream);
    });
    sockets.add(upstream.on('error', () => client.destroy()));
    client.on('close', () => upstream.destroy());
  });
  const port = await listen(server, host);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return { port, url: `http://127.0.0.1:${port}`, name: `127.0.0.1:${port}`, asked };
}
