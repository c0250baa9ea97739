// @module-tag service
import { gzipSync } from 'node:zlib';
import { ATTACKS, entityBomb } from '@catchword/testing/xml-attacks';
import { verifyCredentials } from 'catchword-client/credentials/credentials';
import { readLicenses } from 'catchword-client/licenses/licenses';
import { createUsers } from 'catchword-client/users/users';
import { expect, it } from 'vitest';
import { connectTo, failure, NEVER, type Reply, serve, XML_TYPE } from './connection.ts';

const MB = 2 ** 20;
const GZIP = { 'content-type': XML_TYPE, 'content-encoding': 'gzip' };

const BODIES: readonly (readonly [string, Reply])[] = [
  // The header of the answer says UTF-8, which takes precedence over a declaration.
  ...ATTACKS.filter(([name]) => !name.endsWith('as declared')).map(([name, body]) => [name, { body }] as const),
  ['a 100 MB attribute', { body: Buffer.alloc(100 * MB, '<licenses a="') }],
  ['a gzip bomb', { headers: GZIP, body: gzipSync(Buffer.alloc(100 * MB, 'x')) }],
  ['half a document', { body: '<licenses><license sku="a"' }],
];

it.each(BODIES)('a hostile server with %s is refused by each operation', async (_name, attack) => {
  const { url, asked } = await serve(() => attack);
  const { caller } = connectTo(url);
  const operations = [
    () => readLicenses(caller, {}, NEVER),
    () => verifyCredentials(caller, ['a'], NEVER),
    () => createUsers(caller, '.xml').read('a'),
  ];
  for (const operation of operations) {
    expect((await failure(operation())).code).toMatch(/^(XML_INVALID|SOURCE_BODY)$/);
  }
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
