import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createSecureServer, type Http2Session, type SecureServerOptions } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { httpConnector } from '@catchword/base/http-connector';
import { Agent, request } from '@catchword/base/undici';
import { makeCertificate } from '@catchword/testing/certificate';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { run } from '../../../test/support/cli.ts';

/** Starts a server of HTTP/2, which speaks nothing else unless `options` say so. */
async function receiver(options: SecureServerOptions = {}) {
  const { cert, key } = await makeCertificate(temporaryDirectory());
  const received: { version: string; body: string; path: string }[] = [];
  const sessions = new Set<Http2Session>();
  const pair = { cert: readFileSync(cert), key: readFileSync(key) };
  const server = createSecureServer({ ...pair, ...options }, (asked, answer) => {
    void text(asked).then((body) => {
      received.push({ version: asked.httpVersion, body, path: asked.url });
      answer.writeHead(204).end();
    });
  });
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => {}).on('close', () => sessions.delete(session));
  });
  server.listen(0, '127.0.0.1');
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `https://127.0.0.1:${port}`, cert, ca: pair.cert.toString(), received, sessions };
}

function agentOf(ca: string): Agent {
  const agent = new Agent({ connections: 1, pipelining: 1, connect: httpConnector({ ca, timeout: 10_000 }) });
  onTestFinished(() => agent.destroy());
  return agent;
}

async function post(agent: Agent, origin: string, body: string): Promise<number> {
  const headers = { 'content-type': 'text/plain' };
  const response = await request(agent, { origin, path: '/', method: 'POST', headers, body: Buffer.from(body) });
  await response.body.dump();
  return response.statusCode;
}

it('httpConnector reaches a server that speaks HTTP/2 alone, over one connection and with large bodies', {
  tags: ['slow'],
}, async () => {
  const { url, ca, received, sessions } = await receiver();
  const agent = agentOf(ca);
  const bodies = Array.from({ length: 50 }, (_, index) => `${index}:${'x'.repeat(index * 40_000)}`);
  for (const body of bodies) expect(await post(agent, url, body)).toBe(204);
  expect(received).toEqual(bodies.map((body) => ({ version: '2.0', body, path: '/' })));
  expect(sessions.size).toBe(1);
});

it('httpConnector connects again after a server of HTTP/2 has closed the connection', async () => {
  const { url, ca, received, sessions } = await receiver();
  const agent = agentOf(ca);
  for (let times = 0; times < 5; times++) {
    expect(await post(agent, url, `${times}`)).toBe(204);
    const closed = [...sessions].map((session) => new Promise<void>((resolve) => session.close(resolve)));
    await Promise.all(closed);
  }
  expect(received.map(({ body }) => body)).toEqual(['0', '1', '2', '3', '4']);
});

it('httpConnector speaks HTTP/1.1 with a server that speaks both', async () => {
  const { url, ca, received } = await receiver({ allowHTTP1: true });
  expect(await post(agentOf(ca), url, 'a')).toBe(204);
  expect(received).toMatchObject([{ version: '1.1', body: 'a' }]);
});

it('a webhook is posted to a receiver that speaks HTTP/2 alone, and doctor reaches it', {
  tags: ['slow'],
}, async () => {
  const { url, cert, received } = await receiver();
  const directory = temporaryDirectory();
  const environment = {
    CATCHWORD_NOTIFY_HOOK: `webhook+${url}/hook#allow=private`,
    CATCHWORD_SINK_HOOK: `webhook+${url}/sink#allow=private`,
    NODE_EXTRA_CA_CERTS: cert,
  };
  expect(await run(['notify', 'test', 'hook'], environment, directory)).toMatchObject({ code: 0, stderr: '' });
  expect(received).toMatchObject([{ version: '2.0', path: '/hook' }]);
  expect((await run(['doctor'], environment, directory)).stdout).toContain(
    'can be reached, and its certificate is valid',
  );
  expect(received).toHaveLength(1);
});
