import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { emptyMirror, serve } from './place.ts';
import { connected, get } from './reader.ts';

/** As many as one server keeps open. */
const MOST = 1_000;

it('the server closes connections that are too many at once, and serves again when others end', async () => {
  const { web } = await serve(emptyMirror());
  const idle: Socket[] = [];
  for (let nth = 0; nth < MOST; nth++) idle.push(await connected(web.url));
  const refused = await connected(web.url);
  refused.resume();
  await once(refused, 'close');
  idle[0]?.destroy();
  const isServed = async () => (await get(`${web.url}/healthz`).catch(() => null))?.status;
  await expect.poll(isServed).toBe(200);
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
