import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createRandom, type Random } from '@catchword/sandbox/catalog/random';
import type { Protocol } from './addresses.ts';

/*
 * A server behind a proxy that changes what it answers. What happens to a connection follows from one number, so that it
 * can be replayed.
 */

/** A message of PostgreSQL: its letter, its length (right unless given), its content. */
function message(letter: string, content: Buffer | string = '', length = Buffer.byteLength(content) + 4): Buffer {
  const head = Buffer.alloc(5);
  head.write(letter, 'latin1');
  head.writeInt32BE(length, 1);
  return Buffer.concat([head, Buffer.from(content)]);
}

const int32 = (...values: number[]): Buffer =>
  Buffer.concat(values.map((value) => Buffer.from(new Int32Array([value]).buffer).reverse()));

/** A packet of MySQL: its length, its number, its content. */
function packet(number: number, ...content: (Buffer | string | number)[]): Buffer {
  const bytes = Buffer.concat(content.map((one) => Buffer.from(typeof one === 'number' ? [one] : one)));
  const head = Buffer.alloc(4);
  head.writeUIntLE(bytes.length, 0, 3);
  head[3] = number;
  return Buffer.concat([head, bytes]);
}

/** What a server says out of turn, half, or wrongly. */
export const NONSENSE: Readonly<Record<Protocol, readonly Buffer[]>> = {
  postgres: [
    // Authentication by GSSAPI, SSPI, a password, MD5, SASL, and in an unknown way.
    ...[7, 8, 9, 3, 5, 10, 11, 12, 99].map((method) => message('R', int32(method))),
    message('R', Buffer.concat([int32(10), Buffer.from('SCRAM-SHA-256\0\0')])),
    message('R', Buffer.concat([int32(11), Buffer.from('r=,s=,i=-1')])),
    // Half a row, a row of more columns than it has, a row before its description.
    message('D', Buffer.from([0, 3, 0, 0, 0, 4, 65])),
    message('D', Buffer.from([0x7f, 0xff])),
    message('T', Buffer.from([0, 2, 65])),
    message('T', Buffer.from([0, 0])),
    ...['Z', 'E', 'N', 'A', 'S', 'K', 'C', 'G', 'H', 'W', 'd', 't', 'v', '\0', 'ÿ'].map((letter) => message(letter)),
    ...['1', '2', '3', 'n', 's', 'I', 'c'].map((letter) => message(letter)),
    message('C', '\0'),
    message('E', 'SERROR'),
    message('N', 'SWARNING\0Mcut'),
    message('E', 'SFATAL\0C57P01\0Mgoodbye\0\0'),
    message('E', 'SERROR\0C22021\0Mno\0\0'),
    message('Z', 'X'),
    // Lengths that are too short, negative, and longer than memory.
    ...[0, 3, -1, 0x7fffffff].map((length) => message('D', '', length)),
    Buffer.from('N'),
    Buffer.from('S'),
  ],
  mysql: [
    // Half a greeting, and one of a version that does not exist.
    packet(0, 10, '10.11'),
    packet(0, 10, '99.99.99-x\0', Buffer.alloc(40)),
    packet(0, 9, 'old\0'),
    // Other ways to log in, some of which would show the password.
    ...['mysql_clear_password', 'dialog', 'mysql_old_password', 'auth_gssapi_client', 'nonsense', ''].map((name) =>
      packet(2, 0xfe, `${name}\0seed`),
    ),
    packet(2, 0xfe),
    packet(2, 0x01, 0x04),
    packet(2, 0x01),
    // Errors, whole and cut; a limit of time, a closed connection.
    packet(1, 0xff, 0x28, 0x04, '#08004Too many connections'),
    packet(1, 0xff, 0xbf, 0x0f, '#HY000The client was disconnected by the server because of inactivity'),
    packet(1, 0xff, 0x19),
    packet(1, 0xff),
    packet(1, 0xff, 0xff, 0xff, 1, 2, 3),
    // It worked; the end of rows; a request for a file of ours; counts of columns beyond memory.
    packet(1, 0, 0, 0, 2, 0, 0, 0),
    packet(1, 0),
    packet(1, 0xfe, 0, 0, 2, 0),
    packet(1, 0xfb, '/etc/passwd'),
    packet(1, 0xfe, Buffer.alloc(8, 0xff)),
    packet(1, 0xfd, 0xff, 0xff, 0xff),
    packet(1, 1),
    packet(1),
    packet(255, 0),
    // A length that no packet follows.
    Buffer.from([0xff, 0xff, 0xff, 0]),
    Buffer.from([0xff, 0xff, 0xff, 1, 0]),
    Buffer.from([1]),
    Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'),
  ],
  redis: [
    '$-1',
    '*-1',
    '_',
    ':',
    ':x',
    '+',
    '-',
    '-ERR no',
    '#t',
    ',nan',
    '(1x',
    '*0',
    '*1',
    '%1',
    '~0',
    '>0',
    '>1',
    '>2\r\n_\r\n_',
    '>3\r\n$9\r\nsubscribe\r\n_\r\n:1',
    '>2\r\n$7\r\nmessage\r\n_',
    '*2\r\n*-1\r\n$-1',
    '|1',
    '=3\r\nx',
    '$999999999999',
    '*2147483647',
    '%-5',
    '$-7',
    '$1\r\nxyz',
    '!5\r\nERR x',
    '-MOVED 1 127.0.0.1:1',
    '-LOADING',
    '*3\r\n$9\r\nsubscribe\r\n$-1\r\n:1',
    '\0',
    '+OK\r\n+OK\r\n+OK',
    '-MASTERDOWN no',
    '-UNKILLABLE',
  ].map((text) => Buffer.from(`${text}\r\n`, 'latin1')),
  nats: [
    'MSG',
    'MSG a',
    'MSG a 1',
    'MSG a 1 99999999999\r\nx',
    'MSG a 1 -1',
    'MSG a x 2\r\nxx',
    'HMSG a 1 5 2\r\nxx',
    'HMSG a 1 12 12\r\nNATS/1.0 503',
    'INFO',
    'INFO {',
    'INFO null',
    'INFO []',
    'INFO {"tls_required":true}',
    "-ERR 'x'",
    '-ERR',
    "-ERR 'Authorization Violation'",
    "-ERR 'User Authentication Expired'",
    'PING',
    'PONG',
    '+OK',
    '',
    '\0',
    'SUB a',
    'INFO {"ldm":true,"connect_urls":[null,7]}',
    'INFO {"max_payload":"x"}',
    'INFO {"nonce":7,"auth_required":true}',
    `-ERR 'Permissions Violation for Publish to "a"'`,
    `-ERR 'Permissions Violation for Subscription to "_INBOX.x.*"'`,
    'x'.repeat(5_000),
  ].map((text) => Buffer.from(`${text}\r\n`, 'latin1')),
  webhook: [
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n',
    'HTTP/1.1 101 Up\r\n\r\n',
    'HTTP/1.1 204 No\r\ncontent-length: 5\r\n\r\nhello',
    'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    'HTTP/9.9 999 \r\n\r\n',
    'HTTP/1.1 2\r\n\r\n',
    'HTTP/1.1 200 OK\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    '\r\n\r\n',
    '\0',
    `a: ${'b'.repeat(20_000)}\r\n`,
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n',
    'HTTP/1.1 304 N\r\n\r\n',
    'HTTP/1.0 200\n\n',
    'HTTP/1.1 429 Later\r\nretry-after: 99999999999\r\n\r\n',
    'HTTP/1.1 407 P\r\n\r\n',
    'HTTP/1.1 302 F\r\nlocation: x\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx',
    'HTTP/1.1 200 OK\r\nkeep-alive: timeout=x\r\n\r\n',
  ].map((text) => Buffer.from(text, 'latin1')),
};

/** Changes a piece of an answer. An empty result and `ends` cut the answer off. */
interface Mangling {
  /** Byte of the connection at which it happens. */
  readonly at: number;
  readonly ends: 'no' | 'closed' | 'reset' | 'silent';
  readonly apply: (after: Buffer) => Buffer;
}

function manglingOf(random: Random, protocol: Protocol): Mangling {
  const whole = (below: number): number => Math.floor(random() * below);
  const dictionary = NONSENSE[protocol];
  const word = dictionary[whole(dictionary.length)] ?? Buffer.alloc(0);
  const bytes = Buffer.from(Array.from({ length: 1 + whole(40) }, () => whole(256)));
  const extreme = int32([0, -1, 1, 0x7fffffff, -0x80000000, 65_536][whole(6)] ?? 0);
  const bit = 1 << whole(8);
  const count = 1 + whole(20);
  // Most of what matters happens in the first hundreds of bytes.
  const at = Math.floor(Math.exp(random() * Math.log(6_000))) - 1;
  const changes: Omit<Mangling, 'at'>[] = [
    { ends: 'no', apply: (after) => Buffer.concat([word, after]) },
    { ends: 'no', apply: (after) => Buffer.concat([word, after]) },
    { ends: 'no', apply: () => word },
    { ends: 'no', apply: (after) => Buffer.concat([Buffer.from([(after[0] ?? 0) ^ bit]), after.subarray(1)]) },
    { ends: 'no', apply: (after) => Buffer.concat([after.subarray(0, count), after]) },
    { ends: 'no', apply: (after) => Buffer.concat([after, after]) },
    { ends: 'no', apply: (after) => after.subarray(count) },
    { ends: 'no', apply: (after) => Buffer.concat([extreme, after.subarray(4)]) },
    { ends: 'no', apply: (after) => Buffer.concat([bytes, after]) },
    { ends: 'closed', apply: (after) => after.subarray(0, count) },
    { ends: 'reset', apply: () => word },
    { ends: 'silent', apply: () => Buffer.alloc(0) },
  ];
  return { at, ...(changes[whole(changes.length)] ?? { ends: 'no', apply: (after) => after }) };
}

/** How long a connection may live: altogether, and once it has been mangled. */
const LIFE_MS = 1_000;
const MANGLED_MS = 150;

export type MangledServer = Awaited<ReturnType<typeof mangledServer>>;

/** Starts a proxy to `port`. Its first connection is mangled as `seed` says, the next one as `seed + 1`, and so on. */
export async function mangledServer(protocol: Protocol, port: number, seed: number) {
  const sockets = new Set<Socket>();
  /** `seed` of the next connection; `isHonest` lets answers pass as they are. */
  const state = { seed, isHonest: false };

  function join(client: Socket): void {
    const random = createRandom(state.seed++);
    const plan = Array.from({ length: 1 + Math.floor(random() * 3) }, () => manglingOf(random, protocol));
    plan.sort((a, b) => a.at - b.at);
    const upstream = connect(port, '127.0.0.1');
    const end = (): void => {
      clearTimeout(timer);
      for (const socket of [client, upstream]) socket.destroy();
    };
    let timer = setTimeout(() => (state.isHonest ? undefined : end()), LIFE_MS);
    let passed = 0;
    let isSilent = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', end).on('close', () => {
        sockets.delete(socket);
        end();
      });
    }
    client.pipe(upstream);
    upstream.on('data', (piece) => {
      if (isSilent) return;
      let rest = piece;
      for (let next = plan[0]; next !== undefined && !state.isHonest; next = plan[0]) {
        if (next.at >= passed + piece.length) break;
        plan.shift();
        const before = Math.max(0, Math.min(next.at - passed, rest.length));
        rest = Buffer.concat([rest.subarray(0, before), next.apply(rest.subarray(before))]);
        clearTimeout(timer);
        timer = setTimeout(end, MANGLED_MS);
        if (next.ends === 'no') continue;
        isSilent = true;
        client.write(rest);
        if (next.ends === 'closed') client.end();
        if (next.ends === 'reset') client.resetAndDestroy();
        return;
      }
      passed += piece.length;
      client.write(rest);
    });
  }

  const server = createServer(join).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(state, {
    port: (server.address() as AddressInfo).port,
    stop: async (): Promise<void> => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  });
}
