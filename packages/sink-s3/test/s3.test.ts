import type { Mark, Sink, SinkEvent } from '@catchword/sink-kit/sink';
import { startHttpProxy } from '@catchword/testing/http-proxy';
import { type FakeS3, S3_KEY, startS3 } from '@catchword/testing/s3';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { smallBatches, wrapSink } from '../../../src/contract/harness.ts';
import { sinkConfig } from '../../../src/relay/sink-config.ts';
import { books, configAt, fed, fedBefore, feeding, NEVER } from '../../../test/relay/feeding.ts';
import { readableLog } from '../../../test/relay/readable-log.ts';
import { s3Target } from '../../../test/relay/targets.ts';
import { runHere } from '../../../test/support/in-process.ts';
import { readBucket } from '../../../test/support/s3-reader.ts';

let store: FakeS3;
beforeAll(async () => {
  store = await startS3();
});
afterAll(() => store.stop());

interface Manifest {
  readonly mark: Mark;
  readonly files: readonly {
    readonly file: string;
    readonly kind: string;
    readonly from: number;
    readonly to: number;
  }[];
  readonly retired: readonly { readonly file: string; readonly until: string }[];
}

function manifestOf(prefix: string): Manifest {
  return JSON.parse(String(store.objects.get(`${prefix}manifest.json`))) as Manifest;
}

/** The names of a sink's objects, without the manifest. */
function namesAt(prefix: string): string[] {
  const keys = [...store.objects.keys()].filter((key) => key.startsWith(prefix));
  return keys
    .map((key) => key.slice(prefix.length))
    .filter((name) => name !== 'manifest.json')
    .sort();
}

/** The objects that a manifest names. */
function namedIn({ files, retired }: Manifest): string[] {
  return [...files, ...retired].map(({ file }) => file).sort();
}

/** Makes sinks of one address, which are closed at the end of the test. */
async function sinksAt(url: string, secret = `${S3_KEY.id}:${S3_KEY.secret}`, count = 2): Promise<readonly Sink[]> {
  const sinks = await Promise.all(Array.from({ length: count }, () => configAt(url, secret).make()));
  onTestFinished(async () => {
    for (const sink of sinks) await sink.close();
  });
  return sinks;
}

const START: Mark = { incarnation: 'one', generation: 1, cursor: 0, at: 0, late: 0 };
const at = (cursor: number, generation = 1): Mark => ({ ...START, generation, cursor, at: cursor });

function event(seq: number, vbid: string, body: object | null = { vbid, seq }): SinkEvent {
  const [op, json] = body === null ? (['removed', null] as const) : (['updated', JSON.stringify(body)] as const);
  return { id: `x:${seq}`, seq, at: seq, op, vbid, body: json, text: '' };
}

async function productsAt(prefix: string): Promise<string[]> {
  return (await readBucket(store.objects, prefix)).map(({ vbid }) => vbid).sort();
}

it('a bucket has each product as a row with the columns of the view catalog and every digit', {
  tags: ['slow'],
}, async () => {
  const { harness, target } = await feeding(s3Target(store));
  const body = '{"vbid":"B1","title":"Ä \\"b\\"","edition":12345678901234567890,"price":10.50,"sales_rights":["DE"]}';
  harness.start(configAt(target.url, target.secret));
  await harness.deliver([{ vbid: 'B1', body }, ...books(2, 1)]);
  await harness.deliver([{ vbid: 'P1', body: null }]);
  const rows = await readBucket(store.objects, target.prefix);
  const found = rows.find(({ vbid }) => vbid === 'B1');
  expect(found).toMatchObject({ body, title: 'Ä "b"', distributable: true, sales_rights: '["DE"]', op: 'created' });
  expect(rows.map(({ vbid }) => vbid).sort()).toEqual(['B1', 'P0']);
  const { mark, files } = manifestOf(target.prefix);
  expect(mark).toMatchObject({ cursor: 4, generation: 1 });
  expect(files.map(({ kind, from, to }) => [kind, from, to])).toEqual([
    ['changes', 1, 3],
    ['changes', 4, 4],
  ]);
});

it.each(['', '&format=ndjson'])(
  'a bucket can be read by DuckDB with half of a surrogate pair in a product%s',
  async (format) => {
    const { harness, target } = await feeding(s3Target(store));
    harness.start(configAt(`${target.url}${format}`, target.secret));
    await harness.deliver([{ vbid: 'B1', body: '{"vbid":"B1","title":"a\\ud800","sales_rights":["\\udc00"]}' }]);
    const sql = "(SELECT vbid, seq, body, body->>'title' AS title";
    const [row] = await readBucket(store.objects, target.prefix, (all) => `${sql} FROM (${all.replace(';', '')}))`);
    expect(row).toMatchObject({ title: 'a\ufffd' });
  },
);

it('a bucket that loses the manifest of a delivery gets it again, without rubbish', async () => {
  const { harness, target, config } = await fed(s3Target(store), 10);
  const before = namesAt(target.prefix);
  let failures = 0;
  store.before = (method, path, response) => {
    if (method !== 'PUT' || path !== `/${target.prefix}manifest.json` || failures > 0) return false;
    failures++;
    // The file is there, and the relay does not know whether the manifest is.
    expect(namesAt(target.prefix).length).toBe(before.length + 1);
    response.destroy();
    return true;
  };
  onTestFinished(() => {
    store.before = () => false;
  });
  await harness.deliver(books(5, 2));
  await harness.stop();
  expect(failures).toBe(1);
  const manifest = manifestOf(target.prefix);
  expect(namesAt(target.prefix)).toEqual(namedIn(manifest));
  expect(manifest.files.map(({ to }) => to)).toEqual([10, 15]);
  await harness.resume(config, books(1, 3));
  expect(new Map((await target.read()).products)).toEqual(harness.living());
});

it('a bucket takes files of one relay only: the other one notices, also between deliveries', async () => {
  const { url, prefix } = await s3Target(store);
  const [first, second] = await sinksAt(url);
  await first?.open(START, 9, NEVER);
  await second?.open(START, 9, NEVER);
  const moved = { failure: 'unavailable', message: 'S3: another relay has written manifest.json' };
  await expect(first?.recheck?.(NEVER)).rejects.toMatchObject(moved);
  await first?.open(START, 9, NEVER);
  await expect(second?.deliver([event(1, 'A')], at(1), NEVER)).rejects.toMatchObject(moved);
  await first?.deliver([event(1, 'A'), event(2, 'B')], at(2), NEVER);
  await first?.recheck?.(NEVER);
  expect(await second?.open(START, 9, NEVER)).toEqual(at(2));
  expect(namesAt(prefix)).toEqual(namedIn(manifestOf(prefix)));
  expect(await productsAt(prefix)).toEqual(['A', 'B']);
});

it.each(['ignored', 'refused'] as const)(
  'a bucket whose store has conditional writes %s works with one relay, and doctor says so',
  async (conditions) => {
    store.conditions = conditions;
    onTestFinished(() => {
      store.conditions = 'kept';
    });
    const { harness, target } = await fed(s3Target(store), 5);
    await harness.stop();
    const [first, second] = await sinksAt(target.url);
    expect(await first?.check(NEVER)).toContain('; it has no conditional writes: let one relay only write there; ');
    const mark = manifestOf(target.prefix).mark;
    await first?.open(mark, 9, NEVER);
    await second?.open(mark, 9, NEVER);
    await expect(first?.deliver([event(6, 'A')], { ...mark, cursor: 6 }, NEVER)).rejects.toThrow('another relay');
    expect(await productsAt(target.prefix)).toEqual(['P0', 'P1', 'P2', 'P3', 'P4']);
  },
);

it('doctor says nothing of one relay for a bucket with conditional writes, and leaves no object', async () => {
  const { url, prefix } = await s3Target(store);
  const settings = { CATCHWORD_SINK_LAKE: url, CATCHWORD_SINK_LAKE_SECRET: `${S3_KEY.id}:${S3_KEY.secret}` };
  const { stdout } = await runHere(['doctor', '--json'], settings, temporaryDirectory());
  const text = 'the bucket can be written (only catchword-check was, and removed); 0 files';
  const checks = JSON.parse(stdout) as readonly { readonly check: string }[];
  expect(checks.find(({ check }) => check === 'sink')).toMatchObject({
    level: 'ok',
    text: expect.stringContaining(text),
  });
  expect([...store.objects.keys()].filter((key) => key.startsWith(prefix))).toEqual([]);
});

it('a bucket with many files of changes gets a snapshot, and keeps the old files for an hour', {
  tags: ['slow'],
}, async () => {
  const { harness, target, config } = await fed(s3Target(store, '&files=4'), 30);
  for (let round = 2; !manifestOf(target.prefix).files.some(({ kind }) => kind === 'snapshot'); round++) {
    await harness.deliver([...books(3, round), { vbid: `P${round + 5}`, body: null }]);
  }
  expect((await target.read()).products).toEqual(harness.living());
  await harness.stop();
  const { retired } = manifestOf(target.prefix);
  expect(retired.length).toBeGreaterThanOrEqual(4);
  for (const { until } of retired) {
    const minutes = (Date.parse(until) - Date.now()) / 60_000;
    expect(minutes).toBeGreaterThan(50);
    expect(minutes).toBeLessThanOrEqual(60);
  }
  // A reader of an earlier manifest still finds its files; when the hour is over, they go.
  expect(namesAt(target.prefix)).toEqual(expect.arrayContaining(retired.map(({ file }) => file)));
  const [gone, ...kept] = retired;
  const past = { ...manifestOf(target.prefix), retired: [{ ...gone, until: '2020-01-01T00:00:00.000Z' }, ...kept] };
  store.objects.set(`${target.prefix}manifest.json`, Buffer.from(JSON.stringify(past)));
  await harness.resume(config, books(1, 99));
  expect(namesAt(target.prefix)).not.toContain(gone?.file);
  expect(namesAt(target.prefix)).toEqual(expect.arrayContaining(kept.map(({ file }) => file)));
  expect((await target.read()).products).toEqual(harness.living());
});

it('a bucket gets the snapshot of the next session when the writing of one fails', { tags: ['slow'] }, async () => {
  const { harness, target } = await fed(s3Target(store, '&files=3'), 5);
  let failures = 0;
  store.before = (method, path, response) => {
    // Longer than a request is repeated.
    if (method !== 'PUT' || !path.includes('-snapshot-') || failures === 4) return false;
    failures++;
    response.writeHead(503).end();
    return true;
  };
  onTestFinished(() => {
    store.before = () => false;
  });
  for (let round = 2; !manifestOf(target.prefix).files.some(({ kind }) => kind === 'snapshot'); round++)
    await harness.deliver(books(1, round));
  expect(failures).toBe(4);
  expect((await target.read()).products).toEqual(harness.living());
});

it.each(['a file', 'manifest.json'])('a bucket gets every product again when somebody has deleted %s', async (what) => {
  const { harness, target, config } = await fedBefore(s3Target(store), 20);
  await harness.resume(config, books(5, 2));
  await harness.stop();
  const [first] = manifestOf(target.prefix).files;
  store.objects.delete(`${target.prefix}${what === 'a file' ? first?.file : what}`);
  await harness.resume(config, books(2, 3));
  expect((await target.read()).products).toEqual(harness.living());
  await harness.stop();
  expect(namesAt(target.prefix)).toEqual(namedIn(manifestOf(target.prefix)));
});

it.each([
  ['no sink', (mirror: string) => mirror],
  ['a sink by its name', (mirror: string) => `${mirror}/contract`],
  ['a sink that is gone', (mirror: string) => `${mirror}/5/whole`],
])('a bucket whose mark names %s gets every product again when a file is gone', async (_what, feeder) => {
  const { harness, target, config } = await fedBefore(s3Target(store), 20);
  await harness.resume(config, books(5, 2));
  await harness.stop();
  const { mark, ...manifest } = manifestOf(target.prefix);
  const marked = { ...manifest, mark: { ...mark, incarnation: feeder(harness.store.incarnation) } };
  store.objects.set(`${target.prefix}manifest.json`, Buffer.from(JSON.stringify(marked)));
  store.objects.delete(`${target.prefix}${manifest.files[0]?.file}`);
  await harness.resume(config, books(2, 3));
  expect((await target.read()).products).toEqual(harness.living());
});

it('a bucket lists its products, and applies what it is given, over files of earlier generations', async () => {
  const { url, prefix } = await s3Target(store);
  const [sink] = await sinksAt(url);
  const listed = async () => {
    const keys: string[] = [];
    for await (const some of sink?.list?.({ whole: true, positions: false }, null, at(3), NEVER) ?? [])
      keys.push(...some.map(({ vbid }) => vbid));
    return keys.toSorted();
  };
  await sink?.open(START, 9, NEVER);
  await sink?.deliver([event(1, 'A'), event(2, 'B'), event(3, 'C')], at(3), NEVER);
  await sink?.apply?.([], [], at(0, 2), NEVER);
  await sink?.deliver([event(1, 'A')], at(3, 2), NEVER);
  expect([await productsAt(prefix), await listed()]).toEqual([
    ['A', 'B', 'C'],
    ['A', 'B', 'C'],
  ]);
  await sink?.apply?.([event(2, 'D')], ['C'], at(3, 2), NEVER);
  expect([await productsAt(prefix), await listed()]).toEqual([
    ['A', 'B', 'D'],
    ['A', 'B', 'D'],
  ]);
});

it('a bucket gets changes that come one by one in few files', async () => {
  const { harness, target } = await feeding(s3Target(store, '&every=1s'));
  harness.start(wrapSink(configAt(target.url, target.secret), smallBatches(500)));
  for (let round = 1; round <= 30; round++) {
    harness.change(books(1, round));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await harness.caughtUp();
  expect(manifestOf(target.prefix).files.length).toBeLessThan(15);
  expect((await target.read()).products).toEqual(harness.living());
});

it('a bucket may have any prefix, and pages of a listing', { tags: ['slow'] }, async () => {
  const prefix = "other/a b+c/ü!'()*&<%/🙂";
  const path = prefix.split('/').map(encodeURIComponent).join('/');
  const url = `s3://${path}?endpoint=${encodeURIComponent(store.url)}&region=${S3_KEY.region}&every=0s`;
  for (let round = 1; round <= 8; round++) {
    const [sink] = await sinksAt(url, undefined, 1);
    await sink?.open(at(round - 1), 9, NEVER);
    await sink?.deliver([event(round, `P${round}`)], at(round), NEVER);
    // Rubbish of a crash, and an object of somebody else.
    const end = `${round}-${round}.parquet`;
    store.objects.set(`${prefix}/00000${round}-000009-changes-${end}`, Buffer.from('rubbish'));
    store.objects.set(`${prefix}/notes-${end}`, Buffer.from('theirs'));
  }
  const [last] = await sinksAt(url, undefined, 1);
  expect(await last?.open(at(8), 9, NEVER)).toEqual(at(8));
  const names = namesAt(`${prefix}/`);
  expect(names.filter((name) => !name.startsWith('notes-'))).toEqual(namedIn(manifestOf(`${prefix}/`)));
  expect(names.filter((name) => name.startsWith('notes-'))).toHaveLength(8);
  expect(await productsAt(`${prefix}/`)).toHaveLength(8);
});

const END = `endpoint=http://127.0.0.1:PORT&region=${S3_KEY.region}`;
it.each([
  [
    'an unknown key',
    `s3://books/x?${END}`,
    `AKIDOTHER:${S3_KEY.secret}`,
    '403 (InvalidAccessKeyId)',
    'check the key, and that it belongs to this endpoint',
  ],
  [
    'a wrong secret',
    `s3://books/x?${END}`,
    `${S3_KEY.id}:wrong-secret-of-a-key`,
    '403 (SignatureDoesNotMatch)',
    'check the secret key; or a proxy changes the host or the path of requests',
  ],
  [
    'a wrong region',
    `s3://books/x?${END.replace('eu-test-1', 'us-east-1')}`,
    undefined,
    '400 (AuthorizationHeaderMalformed)',
    'check region= and endpoint=; the path names the bucket, not the host',
  ],
  [
    'a missing bucket',
    `s3://nowhere/x?${END}`,
    undefined,
    '404 (NoSuchBucket)',
    'create the bucket, or correct its name or the endpoint',
  ],
  [
    'a key that is too long',
    `s3://books/${'k'.repeat(1_020)}?${END}`,
    undefined,
    '400 (KeyTooLongError)',
    'use a shorter prefix, or look for a limit of the store',
  ],
])('a bucket with %s is misconfigured, without a secret in the error', async (_, address, secret, said, advice) => {
  const [sink] = await sinksAt(address.replace('PORT', String(store.port)), secret, 1);
  const message = `S3: the store answered ${said} to a PUT: ${advice}`;
  await expect(sink?.open(START, 9, NEVER)).rejects.toMatchObject({ failure: 'misconfigured', message });
});

it('a bucket whose token has expired needs a new key, as the error says', async () => {
  const [sink] = await sinksAt(`s3://books/x?${END}`.replace('PORT', String(store.port)), undefined, 1);
  store.before = (_method, _path, response) => {
    response.writeHead(400, { 'content-type': 'application/xml' }).end('<Error><Code>ExpiredToken</Code></Error>');
    return true;
  };
  onTestFinished(() => {
    store.before = () => false;
  });
  const message = expect.stringContaining('the session token is wrong or has expired: set a new key') as string;
  await expect(sink?.open(START, 9, NEVER)).rejects.toMatchObject({ failure: 'misconfigured', message });
});

it.each([
  ['s3://books/x', '', 'the access key is missing or not valid'],
  ['s3://books/x', 'KEY_WITHOUT_A_SECRET', 'the access key is missing or not valid'],
  ['s3://books/x', 'KEY:wJa:lrXUt:FEMI', 'the access key is missing or not valid'],
  ['s3://books/x?endpoint=minio.example', 'id:secret', 'the value of endpoint is not valid'],
  ['s3://books/x?every=2m', 'id:secret', 'the value of every is not valid'],
  ['s3://books/x?format=csv', 'id:secret', 'the value of format is not valid'],
  ['s3://books/x?acl=public', 'id:secret', 'the address has an unknown option'],
])('an address of a bucket is rejected: %s with the secret %j', async (url, secret, message) => {
  await expect(configAt(url, secret).make()).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: `SINK: ${message}`,
  });
});

it('a secret key of a bucket may be percent-encoded, for its colons, and is masked as it is sent', async () => {
  const address = `s3://books/encoded?${END.replace('PORT', String(store.port))}`;
  const [sink] = await sinksAt(address, `${S3_KEY.id}:${encodeURIComponent(S3_KEY.secret)}`, 1);
  expect(await sink?.check(NEVER)).toContain('the bucket can be written');
  const config = configAt(address, `${S3_KEY.id}:wJal%3ArXUt`);
  expect(config.errorText(new Error('the key wJal:rXUt, or wJal%3ArXUt'))).toBe('the key [secret], or [secret]');
  await expect(configAt(address, 'KEY:wJal:rXUt:FEMI:').make()).rejects.toMatchObject({
    hint: expect.stringMatching(/^(?!.*rXUt).*write %3A for a colon/),
  });
});

it('a bucket with files of another format is misconfigured', async () => {
  const { url } = await s3Target(store);
  const [parquet] = await sinksAt(url, undefined, 1);
  await parquet?.open(START, 9, NEVER);
  const [ndjson] = await sinksAt(`${url}&format=ndjson`, undefined, 1);
  const message = 'S3: the files have the format parquet: set format=parquet, or use another prefix';
  await expect(ndjson?.open(START, 9, NEVER)).rejects.toMatchObject({ failure: 'misconfigured', message });
});

it('a bucket gets files through a proxy', async () => {
  const proxy = await startHttpProxy(store.port);
  const url = `s3://books/proxied?endpoint=http://store.example&region=${S3_KEY.region}`;
  const proxies = { httpProxy: proxy.url };
  const config = sinkConfig({ env: 'SINK', name: 'lake', url, secret: `${S3_KEY.id}:${S3_KEY.secret}`, proxies });
  const sink = await config.make();
  onTestFinished(() => sink.close());
  await sink.open(START, 9, NEVER);
  await sink.deliver([event(1, 'A')], at(1), NEVER);
  expect(await productsAt('books/proxied/')).toEqual(['A']);
  expect(config.address).toBe('store.example/books/proxied/');
});

it.each(['weak', 'none'] as const)(
  'a bucket whose entity tags are %s keeps its files, and notices another relay',
  async (etags) => {
    store.etags = etags;
    onTestFinished(() => {
      store.etags = 'strong';
    });
    const { harness, target, config } = await fed(s3Target(store), 5);
    await harness.deliver(books(3, 2));
    await harness.stop();
    const [first, second] = await sinksAt(target.url);
    const oneOnly = '; it has no conditional writes: let one relay only write there; ';
    expect((await first?.check(NEVER))?.includes(oneOnly)).toBe(etags === 'none');
    const { mark } = manifestOf(target.prefix);
    await first?.open(mark, 9, NEVER);
    await second?.open(mark, 9, NEVER);
    await expect(first?.recheck?.(NEVER)).rejects.toThrow('S3: another relay has written manifest.json');
    await second?.close();
    await harness.resume(config, books(2, 3));
    expect((await target.read()).products).toEqual(harness.living());
  },
);

it('a bucket that answers every fifth request with an error is opened and fed', { tags: ['slow'] }, async () => {
  const { harness, target, config } = await feeding(s3Target(store, '&files=3'));
  let requests = 0;
  store.before = (_method, _path, response) => {
    requests++;
    if (requests % 5 > 0) return false;
    const status = [500, 503, 409][(requests / 5) % 3] ?? 500;
    response.writeHead(status, { 'content-type': 'application/xml' }).end('<Error><Code>SlowDown</Code></Error>');
    return true;
  };
  onTestFinished(() => {
    store.before = () => false;
  });
  const { lines, log } = readableLog();
  harness.start(config, { log });
  for (let round = 1; round <= 8; round++) await harness.deliver(books(3, round));
  expect((await target.read()).products).toEqual(harness.living());
  expect(lines.filter(({ level }) => Number(level) >= 40)).toEqual([]);
});

it('a bucket that took the manifest and answered with an error is not said to have another relay', async () => {
  const { harness, target, config } = await feeding(s3Target(store));
  let isTaken = 0;
  store.before = (method, path, response) => {
    if (method !== 'PUT' || !path.endsWith('/manifest.json') || isTaken++ % 2 > 0) return false;
    // The object is written when the answer has been replaced.
    const head = response.writeHead.bind(response);
    response.writeHead = () => head(500);
    return false;
  };
  onTestFinished(() => {
    store.before = () => false;
  });
  const { lines, log } = readableLog();
  harness.start(config, { log });
  for (let round = 1; round <= 3; round++) await harness.deliver(books(3, round));
  expect((await target.read()).products).toEqual(harness.living());
  expect(lines.filter(({ level }) => Number(level) >= 40)).toEqual([]);
});

it.each([
  ['never ends', () => '<Key>books/a</Key><NextContinuationToken>same</NextContinuationToken>', 'does not advance'],
  [
    'gives another token each time',
    () => `<NextContinuationToken>${Math.random()}</NextContinuationToken>`,
    'does not advance',
  ],
  [
    'ends with a part, as that of a store which knows only an older form of it',
    () => '<IsTruncated>true</IsTruncated><NextMarker>x</NextMarker>',
    'does not advance',
  ],
])('a listing that %s is an error', async (_, text, said) => {
  const { url } = await s3Target(store);
  store.before = (method, path, response) => {
    if (method !== 'GET' || path !== '/books') return false;
    response.end(`<ListBucketResult>${text()}</ListBucketResult>`);
    return true;
  };
  onTestFinished(() => {
    store.before = () => false;
  });
  const [sink] = await sinksAt(url, undefined, 1);
  await expect(sink?.open(START, 9, NEVER)).rejects.toThrow(`S3: the listing of the bucket ${said}`);
});

it('a listing that has new names for ever is an error before they fill the memory', { tags: ['slow'] }, async () => {
  const { url, prefix } = await s3Target(store);
  let pages = 0;
  store.before = (method, path, response) => {
    if (method !== 'GET' || path !== '/books') return false;
    pages++;
    const key = (nth: number): string => `<Key>${prefix}${'n'.repeat(900)}-${pages}-${nth}</Key>`;
    const keys = Array.from({ length: 10_000 }, (_, nth) => key(nth)).join('');
    response.end(`<ListBucketResult>${keys}<NextContinuationToken>${pages}</NextContinuationToken></ListBucketResult>`);
    return true;
  };
  onTestFinished(() => {
    store.before = () => false;
  });
  const [sink] = await sinksAt(url, undefined, 1);
  await expect(sink?.open(START, 9, NEVER)).rejects.toMatchObject({
    failure: 'misconfigured',
    message: 'S3: too many objects have this prefix. Use a prefix of its own',
  });
  expect(pages).toBeLessThan(30);
});

/** Answers the next listings with a token and without a name. @returns the tokens that they were asked with */
function listNothingBut(tokens: string[]): (string | null)[] {
  const asked: (string | null)[] = [];
  store.before = (method, path, response) => {
    const token = method === 'GET' && path === '/books' ? tokens.shift() : undefined;
    if (token === undefined) return false;
    asked.push(new URLSearchParams(response.req.url?.split('?')[1]).get('continuation-token'));
    response.end(`<ListBucketResult><NextContinuationToken>${token}</NextContinuationToken></ListBucketResult>`);
    return true;
  };
  onTestFinished(() => {
    store.before = () => false;
  });
  return asked;
}

it('a listing may have pages without a name, as where many objects were removed', async () => {
  const { url } = await s3Target(store);
  const tokens = ['one', 'two', 'three'];
  listNothingBut(tokens);
  const [sink] = await sinksAt(url, undefined, 1);
  expect(await sink?.open(START, 9, NEVER)).toMatchObject({ cursor: 0 });
  expect(tokens).toEqual([]);
});

it('a listing goes on with exactly the token of the store, and ends with an empty one', async () => {
  const { url } = await s3Target(store);
  const asked = listNothingBut(['a&amp;lt;b', '']);
  const [sink] = await sinksAt(url, undefined, 1);
  expect(await sink?.open(START, 9, NEVER)).toMatchObject({ cursor: 0 });
  expect(asked).toEqual([null, 'a&lt;b']);
});

it('a bucket gets the headers of an encryption that it demands, and else says what may be wrong', async () => {
  store.sse = 'aws:kms';
  onTestFinished(() => {
    store.sse = null;
  });
  const { url, prefix } = await s3Target(store);
  const [without] = await sinksAt(url, undefined, 1);
  await expect(without?.open(START, 9, NEVER)).rejects.toThrow(
    'S3: the store answered 403 (AccessDenied) to a PUT: a policy, or Object Lock, does not allow it',
  );
  const [sink] = await sinksAt(`${url}&sse=aws:kms&sse-key=alias/books`, undefined, 1);
  await sink?.open(START, 9, NEVER);
  await sink?.deliver([event(1, 'A')], at(1), NEVER);
  expect(await productsAt(prefix)).toEqual(['A']);
});
