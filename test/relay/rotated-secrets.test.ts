import { readFileSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { readSettings } from '@catchword/settings/config';
import { serveHttp } from '@catchword/testing/listen';
import { natsAvailable } from '@catchword/testing/nats';
import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { redisAvailable } from '@catchword/testing/redis';
import { startServer } from '@catchword/testing/server';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { useRedis } from '@catchword/testing/used-servers';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { books, temporaryMirror } from './feeding.ts';

const SECRETS = ['an old secret of at least 24 bytes', 'a new secret of at least 24 bytes'].map(
  (one) => `whsec_${Buffer.from(one).toString('base64')}`,
);

/** A mirror whose sink's settings are in files; `write` changes one. */
function filed(files: Readonly<Record<string, string>>) {
  const harness = temporaryMirror();
  const directory = temporaryDirectory();
  const pathOf = (name: string) => join(directory, `secret${name}`);
  const write = (name: string, value: string) => writeFileSync(pathOf(name), `${value}\n`);
  for (const [name, value] of Object.entries(files)) write(name, value);
  const variables = Object.keys(files).map((name) => [`CATCHWORD_SINK_CONTRACT${name}_FILE`, pathOf(name)]);
  const { values, problems } = readSettings(Object.fromEntries(variables) as Record<string, string>);
  const [setting] = values.sinks;
  if (setting === undefined) throw new Error(problems.join('\n'));
  return { harness, write, config: sinkConfig(setting) };
}

/**
 * Feeds a sink, changes its password in the store, and then in the file.
 * @param rotated what the file has before and after
 */
async function rotate(
  { harness, write, config }: ReturnType<typeof filed>,
  rotated: { readonly suffix?: string; readonly before: string; readonly after: string },
  change: () => unknown,
  refusal: string,
): Promise<void> {
  const { suffix = '', before, after } = rotated;
  await harness.resume(config, books(2, 1));
  await change();
  harness.change(books(2, 2));
  await expect.poll(() => harness.sink().error ?? '').toContain(refusal);
  expect(harness.sink()).toMatchObject({ cursor: 2, error: expect.not.stringContaining(before) });
  write(suffix, after);
  await harness.caughtUp();
  expect(harness.sink()).toMatchObject({ cursor: 4, error: null });
}

describe.each(['secret', 'headers'] as const)('a webhook', (changed) => {
  it(`reads its ${changed} again when the receiver answers 401`, async () => {
    const key = changed === 'secret' ? 'secret' : 'authorization';
    let accepted = { secret: SECRETS[0] ?? '', authorization: 'Bearer old-key' };
    const received: unknown[] = [];
    const answer: (...args: Parameters<RequestListener>) => Promise<void> = async (request, response) => {
      const { headers } = request;
      try {
        if (headers.authorization !== accepted.authorization) throw new Error('the key is wrong');
        received.push(new Webhook(accepted.secret).verify(await text(request), headers as Record<string, string>));
        response.writeHead(204).end();
      } catch {
        response.writeHead(401).end();
      }
    };
    const address = await serveHttp((...args) => void answer(...args));
    const scene = filed({
      '': `webhook+${address}/#allow=private`,
      _SECRET: accepted.secret,
      _HEADERS: `Authorization: ${accepted.authorization}\nX-Shop: 7`,
    });
    const after = { secret: SECRETS[1] ?? '', authorization: 'Bearer new-key' };
    const [suffix, written] =
      changed === 'secret' ? ['_SECRET', after.secret] : ['_HEADERS', `authorization:${after.authorization}`];
    await rotate(
      scene,
      { suffix, before: changed === 'secret' ? accepted.secret : 'old-key', after: written },
      () => {
        accepted = { ...accepted, [key]: after[key] };
      },
      'the receiver answered 401',
    );
    expect(received).toHaveLength(2);
  });
});

describe.skipIf(!postgresAvailable)('postgresql', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  it('a PostgreSQL sink reads the file with its address again when its password is wrong', async () => {
    const { client, port } = postgres;
    const { rows } = await client.query<{ hba_file: string }>('SHOW hba_file');
    const file = rows[0]?.hba_file ?? '';
    const trusting = readFileSync(file, 'utf8');
    writeFileSync(file, `host all shop 127.0.0.1/32 scram-sha-256\n${trusting}`);
    await client.query(`CREATE ROLE shop LOGIN PASSWORD 'old-password'; GRANT CREATE ON SCHEMA public TO shop`);
    await client.query('SELECT pg_reload_conf()');
    const at = (password: string) => `postgres://shop:${password}@127.0.0.1:${port}/postgres`;
    await rotate(
      filed({ '': at('old-password') }),
      { before: 'old-password', after: at('new-password') },
      async () => {
        await client.query(`ALTER ROLE shop PASSWORD 'new-password'`);
        await client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop'`);
      },
      '28P01',
    );
  });
});

describe.skipIf(!redisAvailable)('redis', { tags: ['stores'] }, () => {
  const redis = useRedis();

  it('a Redis sink reads the file with its address again when its password is wrong', async () => {
    const { client, server } = redis;
    const rules = ['on', '>old-password', '~*', '+@all'];
    await client.call('ACL', 'SETUSER', 'shop', ...rules);
    const at = (password: string) => server.url.replace('//', `//shop:${password}@`);
    await rotate(
      filed({ '': at('old-password') }),
      { before: 'old-password', after: at('new-password') },
      async () => {
        await client.call('ACL', 'SETUSER', 'shop', 'resetpass', '>new-password');
        await client.call('CLIENT', 'KILL', 'USER', 'shop');
      },
      'WRONGPASS',
    );
  });
});

describe.skipIf(!natsAvailable)('nats', { tags: ['stores'] }, () => {
  it('a NATS sink reads the file with its address again when its password is wrong', async () => {
    const file = (directory: string) => join(directory, 'nats.conf');
    const authorization = (password: string) => `authorization { user: shop, password: ${password} }\n`;
    const server = await startServer({
      command: 'nats-server',
      prepare: (directory) => writeFileSync(file(directory), authorization('old-password')),
      args: (port, directory) => [
        '-c',
        file(directory),
        '-a',
        '127.0.0.1',
        '-p',
        String(port),
        '-js',
        '-sd',
        directory,
      ],
      ready: 'Server is ready',
    });
    onTestFinished(() => server.stop());
    const at = (password: string) => `nats://shop:${password}@127.0.0.1:${server.port}`;
    await rotate(
      filed({ '': at('old-password') }),
      { before: 'old-password', after: at('new-password') },
      async () => {
        await server.kill('SIGTERM');
        writeFileSync(file(server.directory), authorization('new-password'));
        await server.restart();
      },
      'Authorization Violation',
    );
  });
});

it('a sink is not opened at another store that its file names meanwhile', async () => {
  const scene = filed({ '': 'jsonl:one.jsonl' });
  scene.write('', 'jsonl:another.jsonl');
  await expect(scene.config.make()).rejects.toThrow('CATCHWORD_SINK_CONTRACT: its file names another store now');
});
