import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, isInstalled } from '@catchword/testing/server';
import { AwsV4Signer } from 'aws4fetch';
import { until } from '../../src/contract/harness.ts';

export const swiftAvailable = isInstalled('swift-proxy-server', 'OpenStack Swift', '--help');

/** Its key has a colon. */
export const SWIFT_KEY = { id: 'test:tester', secret: 'testing', region: 'eu-test-1' };

const BUCKET = 'books';
const STORAGE = ['account', 'container', 'object'] as const;
const FILTERS = ['catch_errors', 'gatekeeper', 'cache', 'listing_formats', 's3api', 'tempauth', 'slo', 'dlo'];

function section(name: string, values: Readonly<Record<string, string | number>>): string {
  return `[${name}]\n${Object.entries(values)
    .map(([key, value]) => `${key} = ${value}\n`)
    .join('')}`;
}

/** All servers of Swift on this machine, with one copy of each object. */
export async function startSwift() {
  // Swift needs extended attributes, which a file system in memory may lack.
  const root = mkdtempSync('/var/tmp/catchword-swift-');
  mkdirSync(join(root, 'dev/d1'), { recursive: true });
  const children: ChildProcess[] = [];
  const common = (port: number) =>
    section('DEFAULT', {
      devices: join(root, 'dev'),
      mount_check: 'false',
      fallocate_reserve: 0,
      bind_ip: '127.0.0.1',
      bind_port: port,
      workers: 0,
      user: 'root',
      swift_dir: root,
      log_address: join(root, 'none'),
    });
  const start = (kind: string, text: string): void => {
    writeFileSync(join(root, `${kind}.conf`), text);
    const child = spawn(`swift-${kind}-server`, [join(root, `${kind}.conf`)], { stdio: 'ignore' });
    process.once('exit', () => child.kill('SIGKILL'));
    children.push(child);
  };
  for (const kind of STORAGE) {
    const port = await freePort();
    const ring = ['create 4 1 1', `add r1z1-127.0.0.1:${port}/d1 1`, 'rebalance'];
    for (const step of ring) spawnSync('swift-ring-builder', [`${kind}.builder`, ...step.split(' ')], { cwd: root });
    const use = section(`app:${kind}-server`, { use: `egg:swift#${kind}` });
    start(kind, `${common(port)}${section('pipeline:main', { pipeline: `${kind}-server` })}${use}`);
  }
  const port = await freePort();
  const more: Readonly<Record<string, Record<string, string>>> = {
    // Nothing listens there.
    cache: { use: 'egg:swift#memcache', memcache_servers: '127.0.0.1:9' },
    s3api: { location: SWIFT_KEY.region },
    tempauth: { user_test_tester: `${SWIFT_KEY.secret} .admin` },
  };
  const pipeline = section('pipeline:main', { pipeline: [...FILTERS, 'proxy-server'].join(' ') });
  const filters = FILTERS.map((name) => section(`filter:${name}`, { use: `egg:swift#${name}`, ...more[name] }));
  const app = section('app:proxy-server', { use: 'egg:swift#proxy', account_autocreate: 'true' });
  start('proxy', [common(port), pipeline, app, ...filters].join(''));

  /** A request that is signed as clients of AWS do. */
  async function ask(method: string, path: string): Promise<Response> {
    const given = { service: 's3', region: SWIFT_KEY.region, method, url: `http://127.0.0.1:${port}/${BUCKET}${path}` };
    const keys = { accessKeyId: SWIFT_KEY.id, secretAccessKey: SWIFT_KEY.secret };
    const { url, headers } = await new AwsV4Signer({ ...given, ...keys }).sign();
    return await fetch(url, { method, headers });
  }
  await until('Swift has a bucket', () =>
    ask('PUT', '').then(
      ({ ok }) => ok,
      () => false,
    ),
  );

  return {
    port,
    /** The objects below a prefix, by bucket and key. */
    objects: async (prefix: string): Promise<Map<string, Buffer>> => {
      const text = await (await ask('GET', `?list-type=2&prefix=${prefix}`)).text();
      const keys = [...text.matchAll(/<Key>([^<]*)</g)].map(([, key = '']) => key);
      const read = async (key: string) =>
        [`${BUCKET}/${key}`, Buffer.from(await (await ask('GET', `/${key}`)).arrayBuffer())] as const;
      return new Map(await Promise.all(keys.map(read)));
    },
    stop: async (): Promise<void> => {
      const ended = children.map((child) => once(child, 'exit'));
      for (const child of children) child.kill('SIGKILL');
      await Promise.all(ended);
      rmSync(root, { recursive: true, force: true });
    },
  };
}
