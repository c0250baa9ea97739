import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { verifyCredentials } from '../../src/client/credentials/credentials.ts';
import { readLicenses } from '../../src/client/licenses/licenses.ts';
import { createUsers } from '../../src/client/users/users.ts';
import { connectTo, failure, NEVER, type Reply, serve, XML_TYPE } from './connection.ts';

const MB = 2 ** 20;
const GZIP = { 'content-type': XML_TYPE, 'content-encoding': 'gzip' };

function entityBomb(): string {
  const entities = Array.from({ length: 10 }, (_, n) => `<!ENTITY e${n + 1} "${`&e${n};`.repeat(10)}">`);
  return `<?xml version="1.0"?><!DOCTYPE licenses [<!ENTITY e0 "ha">${entities.join('')}]><licenses>&e10;</licenses>`;
}

const ATTACKS: [string, () => Reply, string][] = [
  ['an entity bomb', () => ({ body: entityBomb() }), 'XML_INVALID'],
  ['an entity bomb in a comment’s clothes', () => ({ body: `<!-- --><!doctype a><licenses/>` }), 'XML_INVALID'],
  [
    'an external entity',
    () => ({ body: '<!DOCTYPE licenses [<!ENTITY x SYSTEM "file:///etc/passwd">]><licenses>&x;</licenses>' }),
    'XML_INVALID',
  ],
  [
    'an external DTD',
    () => ({ body: '<!DOCTYPE licenses SYSTEM "http://127.0.0.1:1/x.dtd"><licenses/>' }),
    'XML_INVALID',
  ],
  ['an undeclared entity', () => ({ body: '<licenses>&xxe;</licenses>' }), 'XML_INVALID'],
  ['deep nesting', () => ({ body: '<a>'.repeat(20_000) + '</a>'.repeat(20_000) }), 'XML_INVALID'],
  ['deep nesting that does not end', () => ({ body: '<a>'.repeat(MB) }), 'XML_INVALID'],
  ['a million elements', () => ({ body: `<licenses>${'<a/>'.repeat(MB)}</licenses>` }), 'XML_INVALID'],
  ['a million attributes', () => ({ body: `<licenses ${'a="" '.repeat(MB)}/>` }), 'XML_INVALID'],
  ['a 100 MB attribute', () => ({ body: Buffer.alloc(100 * MB, '<licenses a="') }), 'SOURCE_BODY'],
  ['a 7 MB attribute', () => ({ body: `<licenses a="${'x'.repeat(7 * MB)}"/>` }), 'XML_INVALID'],
  ['a gzip bomb', () => ({ headers: GZIP, body: gzipSync(Buffer.alloc(100 * MB, 'x')) }), 'SOURCE_BODY'],
  ['UTF-16', () => ({ body: Buffer.from('\ufeff<!DOCTYPE licenses><licenses/>', 'utf16le') }), 'SOURCE_BODY'],
  ['half a document', () => ({ body: '<licenses><license sku="a"' }), 'XML_INVALID'],
];

it.each(ATTACKS)('a hostile server with %s is refused by each operation', async (_name, reply, code) => {
  const attack = reply();
  const { url, asked } = await serve(() => attack);
  const { caller } = connectTo(url);
  const operations = [
    () => readLicenses(caller, {}, NEVER),
    () => verifyCredentials(caller, ['a'], NEVER),
    () => createUsers(caller, '.xml').read('a'),
  ];
  for (const operation of operations) expect(await failure(operation())).toMatchObject({ code });
  expect(asked).toHaveLength(operations.length);
});

it('a hostile server that sends an endless body is read up to the limit', async () => {
  let sent = 0;
  const { url } = await serve((_asked, _index, response) => {
    sent = 0;
    response.writeHead(200, { 'content-type': XML_TYPE });
    const more = (): void => {
      while (!response.destroyed && response.write('<license a="'.padEnd(65_536, 'x'))) sent += 65_536;
      sent += 65_536;
    };
    response.on('drain', more);
    more();
    return null;
  });
  expect(await failure(readLicenses(connectTo(url).caller, {}, NEVER))).toMatchObject({ code: 'SOURCE_BODY' });
  // The limit is 8 MB, plus what is buffered in sockets.
  expect(sent).toBeLessThan(32 * MB);
});

it('a hostile server that attacks with an error status is an error by its status', async () => {
  const { url } = await serve(() => ({ status: 422, body: entityBomb() }));
  expect(await failure(readLicenses(connectTo(url).caller, {}, NEVER))).toMatchObject({ code: 'SERVICE_INVALID' });
});
