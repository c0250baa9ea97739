import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Opens a connection, which is closed when the test ends. */
export async function connected(url: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  // The server breaks it, possibly with an error.
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Requests a path, and takes nothing. */
export async function stall(url: string, path: string): Promise<Socket> {
  const socket = await connected(url);
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return socket;
}

/** Whole numbers, by one. */
export function upTo(last: number, first = 1): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

interface Asking {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function ask(url: string, { method = 'GET', headers = {}, body }: Asking = {}): Promise<IncomingMessage> {
  const asked = request(url, { method, headers, agent: false }).end(body);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return response;
}

/** Sends one request on its own connection. `headers` may contain a `Host`, which fetch would not send. */
export async function get(url: string, asking: Asking = {}) {
  const response = await ask(url, asking);
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  return { status: response.statusCode ?? 0, headers: response.headers, text };
}

export async function getJson<T>(url: string, asking: Asking = {}): Promise<T> {
  return JSON.parse((await get(url, asking)).text) as T;
}

/** The fields of one block of a stream; a comment has the empty name. */
export type Block = Readonly<Record<string, string>>;

function blockOf(text: string): Block {
  return Object.fromEntries(
    text.split('\n').map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at), line.slice(at + 1).replace(/^ /, '')];
    }),
  );
}

/** Opens a stream, and reads from it only on demand. */
export async function openReader(url: string, headers: Readonly<Record<string, string>> = {}) {
  const response = await ask(url, { headers });
  onTestFinished(() => {
    response.destroy();
  });
  // The server cut it off; what came before is still read.
  response.on('error', () => {});
  const generator = read(response);
  /** The next block that fits. */
  const until = async (fits: (block: Block) => boolean): Promise<Block> => {
    for (;;) {
      const { value, done } = await generator.next();
      if (done) throw new Error('the stream ended');
      if (fits(value)) return value;
    }
  };
  return {
    response,
    /** Whole blocks until the connection ends. */
    blocks: () => generator,
    /** The same at once. */
    rest: async (): Promise<Block[]> => {
      const found: Block[] = [];
      for await (const block of generator) found.push(block);
      return found;
    },
    /** The code of the message that ends the stream. */
    endCode: async (): Promise<string> => {
      const { data = '' } = await until(({ event }) => event === 'end');
      return (JSON.parse(data) as { code: string }).code;
    },
    /** The next `limit` blocks with an event of the change log. */
    events: async (limit: number): Promise<Block[]> => {
      const found: Block[] = [];
      while (found.length < limit) found.push(await until(isEvent));
      return found;
    },
    until,
    leave: () => response.destroy(),
  };
}

/** Whether it is an event of the change log, not one of the stream's own. */
export function isEvent(block: Block): boolean {
  return block.id !== undefined && block.data !== undefined && block.event === undefined;
}

/** The number of the change that a block's id names. */
export function seqOf({ id = '' }: Block): number {
  return Number(/^[0-9a-f-]{36}(?:_[0-9a-f]{12})?:(\d+)$/.exec(id)?.[1]);
}

async function* read(response: IncomingMessage): AsyncGenerator<Block, void> {
  /** What came since the last whole block: a long one comes in hundreds of pieces, and is joined once. */
  let pieces: string[] = [];
  const chunks = response.setEncoding('utf8').iterator({ destroyOnReturn: false }) as AsyncIterator<string>;
  for (;;) {
    const { value, done } = await chunks.next().catch(() => ({ value: undefined, done: true as const }));
    if (done) return;
    pieces.push(value);
    // A block ends with a line break.
    if (!value.includes('\n')) continue;
    const parts = pieces.join('').split('\n\n');
    pieces = [parts.pop() ?? ''];
    for (const part of parts) yield blockOf(part);
  }
}
