// @module-tag stores
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@catchword/base/clock';
import { makeSigned, type SignedCertificate } from '@catchword/testing/certificate';
import { listen } from '@catchword/testing/listen';
import { mariadbAvailable, startMariadb } from '@catchword/testing/mariadb';
import { natsAvailable, startNats } from '@catchword/testing/nats';
import { postgresAvailable, startPostgres } from '@catchword/testing/postgres';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { freePort, type ServerProcess } from '@catchword/testing/server';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startHeartbeat } from '../../src/operate/incidents/heartbeat.ts';
import { testMessage } from '../../src/operate/incidents/message-text.ts';
import { channel } from '../operate/scene.ts';
import { run } from '../support/cli.ts';
import { readableLog } from './readable-log.ts';

const PROBLEM = 'its certificate is not trusted (UNABLE_TO_VERIFY_LEAF_SIGNATURE)';
const HINT =
  'A certificate must be valid now, for this host, and of a known authority. NODE_EXTRA_CA_CERTS names a file of further authorities; set it in the environment of the process, because .env is too late. For PostgreSQL and MySQL, the address may name one: sslrootcert=FILE, ssl-ca=FILE.';

interface Finding {
  readonly check: string;
  readonly level: string;
  readonly text: string;
  readonly hint?: string;
}

let certificate: SignedCertificate;
const directory = mkdtempSync(join(tmpdir(), 'catchword-authority-'));
beforeAll(async () => {
  certificate = await makeSigned(directory);
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Key and certificate as Node.js takes them. */
const pair = () => ({ key: readFileSync(certificate.key, 'utf8'), cert: readFileSync(certificate.cert, 'utf8') });

/** An HTTPS server that answers each request with 204. @returns its port */
const receiverPort = () => listen(createServer(pair(), (_, response) => response.writeHead(204).end()));

/** Starts a mail server, with TLS from the start or with STARTTLS. @returns its port */
async function mailPort(secure: boolean): Promise<number> {
  const server = new SMTPServer({ ...pair(), secure, logger: false, authOptional: true });
  server.on('error', () => {});
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return (server.server.address() as AddressInfo).port;
}

const isAvailable = postgresAvailable && mariadbAvailable && redisAvailable && natsAvailable;

describe.skipIf(!isAvailable)('a certificate of a private authority', () => {
  let environment: Record<string, string>;
  const servers: ServerProcess[] = [];
  beforeAll(async () => {
    const postgres = await startPostgres({ settings: ['fsync=off'], certificate });
    const mariadb = await startMariadb({ certificate });
    const redis = await startRedis({ certificate });
    const nats = await startNats({ certificate });
    servers.push(postgres, mariadb, redis, nats);
    environment = {
      CATCHWORD_API_KEY: 'K',
      REDIS_URL: redis.url,
      CATCHWORD_SINK_POSTGRES: `postgres://postgres@127.0.0.1:${postgres.port}/postgres?sslmode=require`,
      CATCHWORD_SINK_MYSQL: `mysql://root@127.0.0.1:${mariadb.port}/shop?ssl-mode=REQUIRED`,
      CATCHWORD_SINK_REDIS: redis.url,
      CATCHWORD_SINK_NATS: `tls://127.0.0.1:${nats.port}`,
    };
  });
  afterAll(async () => {
    for (const server of servers) await server.stop();
  });

  /** What doctor finds about the connections. */
  async function findings(more: Record<string, string> = {}): Promise<Finding[]> {
    const port = await receiverPort();
    const all = {
      ...environment,
      ...more,
      CATCHWORD_BASE_URL: `https://127.0.0.1:${port}`,
      CATCHWORD_SINK_WEBHOOK: `webhook+https://127.0.0.1:${port}/#allow=private`,
    };
    const { stdout, stderr } = await run(['doctor', '--json'], all, temporaryDirectory());
    expect(stderr).not.toMatch(/warning/i);
    const found = JSON.parse(stdout) as Finding[];
    return found.filter(({ check, text }) => ['Redis', 'sink'].includes(check) || text.includes('certificate is not'));
  }

  it('is named in the same words by every store, the queue and the service, and no library warns', {
    tags: ['slow'],
  }, async () => {
    const found = await findings();
    for (const { text } of found) expect(text).toContain(PROBLEM);
    const withHints = found.map(({ text, hint = '' }) => (text.includes(HINT) ? text : hint));
    for (const text of withHints) expect(text).toContain(HINT);
    expect(found.filter(({ check }) => check === 'sink')).toHaveLength(5);
    expect(found.length).toBeGreaterThanOrEqual(6);
  });

  it('is trusted everywhere when NODE_EXTRA_CA_CERTS names the authority', { tags: ['slow'] }, async () => {
    const found = await findings({ NODE_EXTRA_CA_CERTS: certificate.ca });
    expect(found.map(({ check, level, text }) => [check, level === 'failed' ? text : level])).toEqual([
      ['Redis', 'ok'],
      ...['mysql', 'nats', 'postgres', 'redis', 'webhook'].map(() => ['sink', 'ok']),
    ]);
  });

  it.each([
    ['127.0.0.1', 'VERIFY_IDENTITY', 'ok'],
    ['127.0.0.1', 'REQUIRED', 'ok'],
    ['localhost', 'REQUIRED', 'failed'],
    ['localhost', 'VERIFY_CA', 'ok'],
  ])(
    'an authority that the address names is trusted by MySQL at %s with %s: %s',
    { tags: ['slow'] },
    async (host, mode, expected) => {
      const url = String(environment.CATCHWORD_SINK_MYSQL).replace('REQUIRED', mode);
      const address = `${url.replace('127.0.0.1', host)}&ssl-ca=${encodeURIComponent(certificate.ca)}`;
      const [found] = (await findings({ CATCHWORD_SINK_MYSQL: address })).filter(({ text }) => text.includes('mysql'));
      expect(found?.level).toBe(expected);
    },
  );

  it('is compared with the address of the one of several NATS servers that answers', { tags: ['slow'] }, async () => {
    const servers = `tls://127.0.0.2:${await freePort()},${environment.CATCHWORD_SINK_NATS?.slice('tls://'.length)}`;
    const found = await findings({ NODE_EXTRA_CA_CERTS: certificate.ca, CATCHWORD_SINK_NATS: servers });
    expect(found.filter(({ level }) => level === 'failed')).toEqual([]);
  });
});

it.each(['webhook', 'slack', 'smtp', 'smtps'])(
  'a channel names a certificate that is not trusted: %s',
  async (kind) => {
    const port = kind.startsWith('smtp') ? await mailPort(kind === 'smtps') : await receiverPort();
    const mail = `${kind}://127.0.0.1:${port}?from=a@shop.example&to=b@shop.example`;
    const config = channel('c', kind.startsWith('smtp') ? mail : `${kind}+https://127.0.0.1:${port}/#allow=private`);
    const message = testMessage('c', { name: undefined, host: 'h' }, 0);
    const send = await config.make();
    await expect(send(message, new AbortController().signal)).rejects.toMatchObject({
      failure: 'misconfigured',
      message: `${PROBLEM}. ${HINT}`,
    });
  },
);

it('a channel with smtps:// at a port with STARTTLS says so', async () => {
  const config = channel('c', `smtps://127.0.0.1:${await mailPort(false)}?from=a@shop.example&to=b@shop.example`);
  const message = testMessage('c', { name: undefined, host: 'h' }, 0);
  const send = await config.make();
  await expect(send(message, new AbortController().signal)).rejects.toMatchObject({
    failure: 'misconfigured',
    message: 'this port does not encrypt from the start: use smtp://, for STARTTLS',
  });
});

it('a heartbeat names a certificate that is not trusted', async () => {
  const { lines, log } = readableLog();
  const url = `https://127.0.0.1:${await receiverPort()}/ping/secret-uuid#allow=private`;
  const heartbeat = startHeartbeat({ url, proxies: {}, clock: { ...systemClock, sleep: async () => {} }, log });
  heartbeat.beat('complete');
  await heartbeat.stop();
  expect(lines).toMatchObject([{ reason: `${PROBLEM}. ${HINT}` }]);
});
