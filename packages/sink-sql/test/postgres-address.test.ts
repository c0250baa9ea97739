import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { CatchwordError, messageOf } from '@catchword/base/errors';
import { makeSigned, type SignedCertificate } from '@catchword/testing/certificate';
import { postgresAvailable, postgresUser, startPostgres } from '@catchword/testing/postgres';
import type { ServerProcess } from '@catchword/testing/server';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { configAt, NEVER } from '../../../test/relay/feeding.ts';
import { run } from '../../../test/support/cli.ts';

/** Why a sink cannot be made: its message and its hint. */
async function problemOf(url: string): Promise<string> {
  try {
    await (await configAt(url).make()).close();
    return 'none';
  } catch (error) {
    return `${messageOf(error)} | ${error instanceof CatchwordError ? error.hint : ''}`;
  }
}

/** Tries to write, as doctor does. */
async function check(url: string): Promise<string> {
  const config = configAt(url);
  const sink = await config.make();
  const text = await sink.check(NEVER).catch((error: { failure?: string }) => {
    return `${error.failure}: ${config.errorText(error)}`;
  });
  await sink.close();
  return text;
}

it.each([
  ['Neon', 'postgresql://me:pw@ep-a.neon.tech/db?sslmode=require&channel_binding=require', 'ep-a.neon.tech:5432/db'],
  [
    'Prisma',
    'postgresql://me:pw@db.example:6543/db?pgbouncer=true&connection_limit=1&pool_timeout=0',
    'db.example:6543/db',
  ],
  [
    'Vercel',
    'postgres://me:pw@db.example/db?sslmode=require&supa=base-pooler.x&connect_timeout=15',
    'db.example:5432/db',
  ],
  ['Heroku', 'postgres://me:pw@ec2.example:5432/db', 'ec2.example:5432/db'],
  ['a replica set', 'postgres://me:pw@db.example/db?target_session_attrs=read-write', 'db.example:5432/db'],
  ['Cloud SQL', 'postgres://me:pw@/db?host=/cloudsql/a:b:c', '/cloudsql/a:b:c:5432/db'],
  ['Cloud SQL for Prisma', 'postgresql://me:pw@localhost/db?host=/cloudsql/a:b:c', '/cloudsql/a:b:c:5432/db'],
  ['libpq without a host', 'postgresql:///db?host=/var/run/postgresql', '/var/run/postgresql:5432/db'],
  ['libpq with a socket as host', 'postgres://%2Fvar%2Frun%2Fpostgresql:5433/db', '/var/run/postgresql:5433/db'],
  ['libpq with options alone', 'postgres://?host=db.example&port=9&dbname=db&user=me&password=pw', 'db.example:9/db'],
  ['IPv6', 'postgres://me:pw@[::1]/db', '[::1]:5432/db'],
  ['a host in the query', 'postgres://a.example/db?host=b.example&port=9', 'b.example:9/db'],
  ['a name with a space', 'postgres://a.example/my%20db', 'a.example:5432/my%20db'],
])('the address of PostgreSQL as it is copied from %s is used', async (_name, url, place) => {
  const config = configAt(url);
  expect([config.address, config.identity]).toEqual([`${place} products`, `${place} products`]);
  expect(await problemOf(url)).toBe('none');
});

it('the name of a table has room for the names of its parts; its schema may be as long as the server allows', async () => {
  const at = (schema: number, table: number) => `postgres://h/db?table=${'s'.repeat(schema)}.${'t'.repeat(table)}`;
  expect(await problemOf(at(63, 50))).toBe('none');
  expect(await problemOf(at(1, 51))).toContain('table is not valid');
  expect(await problemOf(at(64, 1))).toContain('table is not valid');
  expect(await problemOf('postgres://h/db?table=a.b.c')).toContain('table is not valid');
});

it.each([
  ['postgres://h/db?schema=public', 'the option schema is not for a sink | Use table=SCHEMA.NAME.'],
  ['postgres://h/db?require_auth=none', 'the option require_auth is not for a sink | Use an address without it.'],
  ['postgres://h/db?hostaddr=::1', 'the option hostaddr is not for a sink | Use host=ADDRESS.'],
  ['postgres://h/db?gssencmode=require', 'the value of gssencmode is not valid | Use disable, prefer.'],
  [
    'postgres://h/db?target_session_attrs=standby',
    'the value of target_session_attrs is not valid | Use any, read-write',
  ],
  ['postgres://h/db?statement_timeout=30s', 'the value of statement_timeout is not valid | Use a whole number'],
  [
    'postgres://h/db?tabel=books',
    'unknown option | Options are: table, removals, refused, verify. Did you mean table?',
  ],
  [
    'postgres://h/db?sslmod=require',
    'unknown option | Options are: table, removals, refused, verify. Did you mean sslmode?',
  ],
  [
    'postgres://h/db?password=a&b=c',
    'unknown option | Options are: table, removals, refused, verify. Characters of a password',
  ],
  [
    'postgres://h/db?table="books"',
    'table is not valid | Use a name of at most 50 characters such as products, or with its schema: shop.products. Write it without',
  ],
  ['postgres://h/db?sslmode="require"', 'sslmode is not valid | Use disable, allow, prefer'],
  ['postgres://a:1,b:2/db', 'there are several hosts | Use one: the primary, or a name that leads to it.'],
  ['postgres://me:pw@a,b/db', 'there are several hosts |'],
  ['postgres://a/db?host=a,b', 'there are several hosts |'],
  ['postgres://a/db?port=1,2', 'there are several hosts |'],
  ['postgres://a/db?port=x', 'the port is not valid | Use a number from 1 to 65535.'],
  ['postgres:///db', 'the host is missing | Use postgres://HOST/NAME, or postgres:///NAME?host=/DIRECTORY.'],
  ['postgres://me:pw@/db', 'the host is missing |'],
  [' "postgres://h/db"', 'Write the address alone: without quotes, and without anything before it.'],
  ['“postgres://h/db”', 'Write the address alone: without quotes, and without anything before it.'],
  [`psql 'postgresql://me:pw@h/db'`, 'Write the address alone: without quotes, and without anything before it.'],
  ['DATABASE_URL=postgres://me:pw@h/db', 'Write the address alone: without quotes, and without anything before it.'],
])('the address of PostgreSQL is rejected with the reason: %s', async (url, problem) => {
  expect(await problemOf(url)).toContain(problem);
});

describe.skipIf(!postgresAvailable)('a PostgreSQL with a socket and TLS', { tags: ['stores'] }, () => {
  let sockets: string;
  let certificate: SignedCertificate;
  let server: ServerProcess;
  beforeAll(async () => {
    // The path of a socket has at most 107 characters.
    sockets = mkdtempSync(join(tmpdir(), 'pg-'));
    const owner = postgresUser();
    if (owner !== undefined) chownSync(sockets, owner.uid, owner.gid);
    certificate = await makeSigned(sockets, 'DNS:db.example');
    server = await startPostgres({ settings: ['fsync=off'], certificate, sockets });
  });
  afterAll(async () => {
    await server.stop();
    rmSync(sockets, { recursive: true });
  });

  it('a socket is used in every form of libpq, where sslmode means nothing', async () => {
    const { port } = server;
    const encoded = encodeURIComponent(sockets);
    for (const url of [
      `postgres:///postgres?host=${sockets}&port=${port}&user=postgres`,
      `postgres://postgres@/postgres?host=${encoded}&port=${port}`,
      `postgres://postgres@${encoded}:${port}/postgres`,
      `postgres://postgres@nowhere.example/postgres?host=${sockets}&port=${port}&sslmode=verify-full`,
    ]) {
      expect(configAt(url).identity).toBe(`${sockets}:${port}/postgres products`);
      expect(await check(url)).toMatch(/^table products can be created and written/);
    }
  });

  it('an option in the query leads to the server that the sink list shows', async () => {
    const url = `postgres://nowhere.example:1/postgres?host=127.0.0.1&port=${server.port}&user=postgres`;
    expect(await check(url)).toMatch(/^table products can be created/);
    expect(configAt(url).identity).toBe(`127.0.0.1:${server.port}/postgres products`);
  });

  const distrusted = /^misconfigured: its certificate is not trusted \(UNABLE_TO_VERIFY_LEAF_SIGNATURE\)/;
  const otherHost = /^misconfigured: its certificate is not trusted \(ERR_TLS_CERT_ALTNAME_INVALID\)/;
  it.each<[string, RegExp | string]>([
    ['sslmode=disable', 'plain'],
    ['sslmode=prefer', distrusted],
    ['sslmode=require', distrusted],
    ['ssl=true', distrusted],
    ['ssl=0', 'plain'],
    ['sslmode=verify-ca', distrusted],
    ['sslmode=verify-full', distrusted],
    ['channel_binding=require', distrusted],
    ['sslmode=no-verify', 'TLS'],
    ['sslmode=require&sslrootcert=CA', otherHost],
    ['sslmode=verify-full&sslrootcert=CA', otherHost],
    ['sslrootcert=CA', otherHost],
    ['sslrootcert=system', distrusted],
    ['sslmode=verify-ca&sslrootcert=CA', 'TLS'],
    ['sslmode=require&uselibpqcompat=true', 'TLS'],
    ['sslmode=require&uselibpqcompat=true&sslrootcert=CA', 'TLS'],
    ['sslmode=verify-ca&uselibpqcompat=true', distrusted],
    ['sslmode=verify-full&uselibpqcompat=true&sslrootcert=CA', otherHost],
    [
      'sslrootcert=/nowhere.pem',
      /^misconfigured: PostgreSQL: cannot read the file of sslrootcert \(it does not exist, ENOENT\)$/,
    ],
  ])('the TLS of an address with %s', async (options, expected) => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    onTestFinished(() => void process.off('warning', onWarning));
    const url = `postgres://postgres@127.0.0.1:${server.port}/postgres?${options.replace('CA', certificate.ca)}`;
    if (typeof expected !== 'string') expect(await check(url)).toMatch(expected);
    else {
      const admin = new pg.Client({ host: '127.0.0.1', port: server.port, user: 'postgres', database: 'postgres' });
      await admin.connect();
      onTestFinished(() => admin.end());
      const sink = await configAt(`${url}&table=tls`).make();
      await sink.open({ incarnation: 'a', generation: 1, cursor: 0, at: 0, late: 0 }, 0, NEVER);
      const text = `SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'catchword'`;
      expect((await admin.query(text)).rows).toEqual([{ ssl: expected === 'TLS' }]);
      await sink.close();
    }
    expect(warnings).toEqual([]);
  });

  it('the driver writes no warning about TLS to stderr', async () => {
    const url = `postgres://postgres@127.0.0.1:${server.port}/postgres?sslmode=require`;
    const { stdout, stderr } = await run(['doctor'], { CATCHWORD_SINK_SHOP: url }, temporaryDirectory());
    expect(stdout).toContain('its certificate is not trusted (UNABLE_TO_VERIFY_LEAF_SIGNATURE). A certificate must');
    expect(stderr).toBe('');
  });
});

it('an address without a user means the user of the process, also where USER is not set', async () => {
  await import('@catchword/sink-sql/postgres/postgres-connection');
  expect(pg.defaults.user).toBe(process.env.USER ?? userInfo().username);
});
