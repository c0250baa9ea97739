import { createServer, type Socket } from 'node:net';
import { httpConnector } from '@catchword/base/http-connector';
import { listen } from '@catchword/testing/listen';
import { Agent, request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';

const CONTINUE = 'HTTP/1.1 100 Continue\r\nserver: old\r\n\r\n';

/** Answers each request with these pieces, one after the other. */
async function answering(pieces: readonly string[]) {
  let connections = 0;
  const server = createServer((socket: Socket) => {
    connections++;
    socket
      .on('error', () => {})
      .on('data', (asked) => {
        if (!asked.toString().includes('\r\n\r\n')) return;
        const write = (index: number): void => {
          const piece = pieces[index];
          if (piece !== undefined) socket.write(piece, () => setTimeout(() => write(index + 1), 5));
        };
        write(0);
      });
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  const agent = new Agent({ connections: 1, connect: httpConnector({}) });
  onTestFinished(() => agent.destroy());
  const ask = async () => {
    const { statusCode, body } = await request(url, { method: 'POST', body: '{}', dispatcher: agent });
    return [statusCode, await body.text()];
  };
  return { ask, connections: () => connections };
}

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

it.each([
  ['whole', [CONTINUE + OK]],
  ['before the answer', [CONTINUE, OK]],
  ['twice', [CONTINUE + CONTINUE, CONTINUE, OK]],
  ['in pieces', (CONTINUE + OK).split('')],
  ['without headers', ['HTTP/1.1 100\n\n', OK]],
])('httpConnector skips an unasked 100 Continue: %s', async (_name, pieces) => {
  const { ask, connections } = await answering(pieces);
  for (let times = 0; times < 3; times++) expect(await ask()).toEqual([200, 'ok']);
  expect(connections()).toBe(1);
});

it('httpConnector leaves bodies and other answers as they are', async () => {
  const inBody = `HTTP/1.1 200 OK\r\ncontent-length: ${CONTINUE.length * 2}\r\n\r\n`;
  expect(await (await answering([inBody, CONTINUE, CONTINUE])).ask()).toEqual([200, CONTINUE + CONTINUE]);
  const early = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';
  expect(await (await answering([early, OK])).ask()).toEqual([200, 'ok']);
  await expect((await answering(['HTTP/1.1 10', '1 No\r\n\r\n'])).ask()).rejects.toThrow();
});
