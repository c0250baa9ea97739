import { once } from 'node:events';
import { createServer, Server as HttpServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { onTestFinished } from 'vitest';

/** Listens until the test ends. @returns the port */
export async function listen(server: Server, host = '127.0.0.1'): Promise<number> {
  server.listen(0, host);
  onTestFinished(() => {
    if (server instanceof HttpServer) server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Answers requests until the test ends. @returns the address */
export async function serveHttp(handle: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(handle))}`;
}
