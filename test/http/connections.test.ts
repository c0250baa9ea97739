import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { emptyMirror, serve } from './place.ts';
import { connected, get } from './reader.ts';

it('the server answers probes and readers while a thousand connections say nothing, and counts those that it closed', {
  tags: ['slow'],
}, async () => {
  const { web, log } = await serve(emptyMirror());
  const idle: Socket[] = [];
  for (let round = 0; round < 11; round++) {
    idle.push(...(await Promise.all(Array.from({ length: 100 }, () => connected(web.url)))));
  }
  expect((await get(`${web.url}/healthz`)).status).toBe(200);
  const figures = await get(`${web.url}/metrics`);
  expect(figures.status).toBe(200);
  const closed = [...figures.text.matchAll(/connections_closed_total{why="[^"]+"} (\d+)/g)];
  expect(closed.reduce((sum, [, count]) => sum + Number(count), 0)).toBeGreaterThanOrEqual(600);
  const lines = log.filter(({ msg }) => msg === 'connections without a request were closed');
  expect(lines[0]).toMatchObject({ address: '127.0.0.1' });
  // One line a minute for each reason.
  expect(lines.length).toBeLessThanOrEqual(4);
  // The ones that have waited longest go first.
  await expect.poll(() => idle[0]?.closed).toBe(true);
});

it('the server closes the connection that ended its last request first, and none that has one', async () => {
  const { web } = await serve(emptyMirror());
  const request = 'GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n';
  const stream = await connected(web.url);
  stream.resume();
  stream.write('GET /api/changes/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
  const kept: Socket[] = [];
  for (let nth = 0; nth < 502; nth++) {
    const socket = await connected(web.url);
    kept.push(socket);
    socket.write(request);
    await once(socket, 'data');
    socket.resume();
  }
  await expect.poll(() => kept.filter(({ closed }) => closed).length).toBeGreaterThanOrEqual(2);
  expect([kept[0]?.closed, kept.at(-1)?.closed, stream.closed]).toEqual([true, false, false]);
});

it('the server closes a connection whose first byte does not arrive in time', { tags: ['slow'] }, async () => {
  const { web } = await serve(emptyMirror());
  const silent = await connected(web.url);
  const slow = await connected(web.url);
  silent.resume();
  slow.resume();
  slow.write('G');
  await once(silent, 'close');
  expect(slow.closed).toBe(false);
});

it('the server closes a connection that sends many requests before it takes their answers', async () => {
  const { web } = await serve(emptyMirror());
  const request = (path: string) => `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`;
  const served = await connected(web.url);
  let answers = '';
  served.setEncoding('utf8').on('data', (text: string) => {
    answers += text;
  });
  served.write(request('/healthz').repeat(20));
  await expect.poll(() => answers.match(/"alive":true/g)?.length).toBe(20);
  const greedy = await connected(web.url);
  greedy.resume();
  greedy.write(request('/api/changes/stream') + request('/healthz').repeat(100));
  await once(greedy, 'close');
  expect((await get(`${web.url}/healthz`)).status).toBe(200);
});
