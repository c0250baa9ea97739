import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { filled } from '../support/place.ts';
import { emptyMirror, serve } from './place.ts';
import { connected, get, isEvent, openReader, seqOf, upTo } from './reader.ts';
import { watchResponses } from './watch.ts';

/** So long that a test that waits for it times out. */
const HOURS = 3_600_000;
const PATIENT = { limits: { stopMs: HOURS, graceMs: HOURS, slowReaderMs: HOURS } };
/** The largest response: more than the sockets of both sides hold. */
const PAGE = '/api/changes?limit=10000';

/** Sends a request on an open connection, and reads until it closes. */
async function askOn(socket: Socket, path: string): Promise<string> {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return await textOf(socket);
}

/** Requests three pages at once and reads nothing. Node.js does not notify the third one of a broken connection. */
async function askThrice(url: string): Promise<Socket> {
  const socket = await connected(url);
  socket.write(`GET ${PAGE} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(3));
  return socket;
}

/** The bodies of chunked responses, one after another, as far as they were received whole. */
function bodiesOf(received: string): string[] {
  const [, ...responses] = received.split('HTTP/1.1 200 OK');
  return responses.flatMap((response) => {
    const parts: string[] = [];
    for (let at = response.indexOf('\r\n\r\n') + 4; ; ) {
      const from = response.indexOf('\r\n', at) + 2;
      const size = Number.parseInt(response.slice(at, from), 16);
      if (Number.isNaN(size) || from + size > response.length) return [];
      if (size === 0) return [Buffer.from(parts.join(''), 'latin1').toString()];
      parts.push(response.slice(from, from + size));
      at = from + size + 2;
    }
  });
}

async function textOf(stream: AsyncIterable<Buffer>, encoding: BufferEncoding = 'utf8'): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString(encoding);
}

it('the server stops listening at once, and waits until open responses are received', { tags: ['slow'] }, async () => {
  const { db } = await filled({ items: 20_000, details: true });
  const { web } = await serve(db, PATIENT);
  const page = (await get(`${web.url}${PAGE}`)).text;
  const watched = watchResponses();
  const stream = await openReader(`${web.url}/api/changes/stream`);
  const pages = await askThrice(web.url);
  const responses = () => watched.map(({ response }) => response);
  await expect.poll(() => responses().map((response) => response.writableNeedDrain)).toEqual(Array(4).fill(true));
  const [idle, idleToo] = [await connected(web.url), await connected(web.url)];
  for (const socket of [idle, idleToo]) {
    socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'data');
  }
  const stopped = web.stop();

  await expect(get(`${web.url}/healthz`)).rejects.toThrow(/ECONNREFUSED/);
  const refused = await askOn(idle, '/api/status');
  expect(refused).toMatch(/^HTTP\/1\.1 503 /);
  expect(refused).toMatch(/^connection: close\r$/im);
  expect(refused).toMatch(/^retry-after: 10\r$/im);
  expect(refused).toContain('"code":"STOPPING"');
  // Any other status would end a standard EventSource for good.
  const ended = await askOn(idleToo, '/api/changes/stream');
  expect(ended).toMatch(/^HTTP\/1\.1 200 /);
  expect(ended).toMatch(/\nretry: \d+\nevent: end\ndata: \{"code":"SHUTDOWN"/);
  // The pages were begun, but not all were received.
  expect(responses()[3]?.closed).toBe(false);

  const blocks = await stream.rest();
  expect(JSON.parse(blocks.at(-1)?.data ?? '')).toMatchObject({ code: 'SHUTDOWN' });
  const seen = blocks.filter(isEvent).map(seqOf);
  expect(seen).toEqual(upTo(seen.length));
  expect(seen.length).toBeLessThan(20_000);
  const bodies = bodiesOf(await textOf(pages, 'latin1'));
  expect(bodies.map((body) => body === page)).toEqual([true, true, true]);
  await stopped;
});

it('the server that stops does not wait for clients without a complete request', async () => {
  const { web } = await serve(emptyMirror(), PATIENT);
  await connected(web.url);
  const halting = await connected(web.url);
  halting.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /heal');
  await once(halting, 'data');
  // Connections are accepted in order: the silent one was accepted before the other was answered.
  await web.stop();
});

it('the server that stops does not wait for clients that disconnected', { tags: ['slow'] }, async () => {
  const { db } = await filled({ items: 20_000, details: true });
  const { web } = await serve(db, PATIENT);
  const watched = watchResponses();
  const pages = await askThrice(web.url);
  await expect.poll(() => watched.map(({ response }) => response.writableNeedDrain)).toEqual([true, true, true]);
  pages.destroy();
  await web.stop();
});
