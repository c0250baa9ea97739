import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { type Harness, openHarness, until } from '../../src/relay/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { writeUnder } from '../../src/store/hold-lease.ts';
import { books } from '../relay/feeding.ts';
import { webhookTarget } from '../relay/targets.ts';
import { start, startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { temporaryDirectory } from '../support/mirror.ts';

interface Listed {
  readonly name: string;
  readonly [field: string]: unknown;
}

function open() {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  const directory = temporaryDirectory();
  const env: Record<string, string> = { CATCHWORD_BASE_URL: 'http://service.example', CATCHWORD_DB: bench.store.path };
  env.CATCHWORD_SINK_FILE = `jsonl:${join(directory, 'out.jsonl')}`;
  const sink = (...args: string[]) => runHere(['sink', ...args], env, directory);
  const list = async () => JSON.parse((await sink('list', '--json')).stdout) as Listed[];
  return { bench, directory, env, sink, list };
}

/** Runs a relay until every event is confirmed. */
async function relay(bench: Harness, env: Record<string, string>): Promise<void> {
  for (const sink of loadConfig(env).sinks) bench.start(sinkConfig(sink));
  await isConfirmed(bench);
  await bench.stop();
}

async function isConfirmed(bench: Harness): Promise<void> {
  const last = bench.store.changes.lastSeq();
  await until('all is confirmed', () => bench.store.sinks.get('file')?.cursor === last);
}

it('lists, pauses, resumes and replays a sink', async () => {
  const { bench, directory, env, sink, list } = open();
  bench.change(books(5, 1));
  const address = join(directory, 'out.jsonl');
  expect(await list()).toEqual([{ name: 'file', kind: 'jsonl', address, identity: address, state: 'new' }]);
  await relay(bench, env);
  bench.change(books(3, 2));
  expect(await list()).toMatchObject([
    {
      name: 'file',
      kind: 'jsonl',
      state: 'live',
      cursor: 5,
      lag_records: 3,
      delivered: 5,
      parked: 0,
      error: null,
      gaps: [],
    },
  ]);
  const { stdout } = await sink('list');
  expect(stdout).toMatch(
    /^name +kind +where +cursor +behind +for +state +rate +parked\nfile +jsonl +\S+out\.jsonl +5 +3 /,
  );

  expect(await sink('pause', 'file')).toMatchObject({ code: 0, stdout: 'file is paused\n' });
  expect(await sink('pause', 'file')).toMatchObject({ code: 2, stderr: expect.stringContaining('it is paused') });
  expect(await list()).toMatchObject([{ state: 'paused' }]);
  expect(await sink('resume', 'file')).toMatchObject({ code: 0, stdout: 'file resumes after 5\n' });
  await relay(bench, env);

  expect(await sink('replay', 'file', '--from', '7')).toMatchObject({ code: 0 });
  await relay(bench, env);
  expect(await sink('replay', 'file')).toMatchObject({ code: 0 });
  await relay(bench, env);
  const seqs = readFileSync(join(directory, 'out.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => Number((JSON.parse(line) as { sequence: string }).sequence));
  expect(seqs).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 7, 8, 4, 5, 6, 7, 8]);
});

it('lists parked events, and skips one', async () => {
  const { bench, sink, list } = open();
  bench.change(books(4, 1));
  writeUnder(bench.store.relayLease, Date.now(), ({ sinks }) => {
    sinks.configure({ name: 'file', kind: 'jsonl', address: 'out.jsonl', identity: 'out.jsonl' });
    const [first, second] = bench.events();
    if (first === undefined || second === undefined) throw new Error('no events');
    sinks.park(1, { seq: 1, reason: 'it is poison', at: 0, change: first });
    sinks.parkWaiting(1, [{ seq: 2, reason: 'waits', at: 0, change: { ...second, vbid: 'P0' } }]);
  });
  expect((await sink('parked', 'file')).stdout).toMatch(
    /1 +P0 +created +refused +1970-01-01 00:00:00 UTC +it is poison\n/,
  );
  expect(JSON.parse((await sink('parked', 'file', '--json')).stdout)).toMatchObject([
    { seq: 1, vbid: 'P0', op: 'created', state: 'refused' },
    { seq: 2, state: 'waiting' },
  ]);
  expect(await list()).toMatchObject([{ parked: 2 }]);
  expect(await sink('skip', 'file', '2')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('has not refused event 2'),
  });
  expect(await sink('skip', 'file', '1')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('1 event skipped'),
  });
  expect(JSON.parse((await sink('parked', 'file', '--json')).stdout)).toMatchObject([{ seq: 2, state: 'ready' }]);
});

it('redelivers refused events, and resumes the sink', async () => {
  const { bench, directory, env, sink, list } = open();
  const hook = { refuses: true };
  const target = await webhookTarget(() => ({ status: hook.refuses ? 422 : 204 }), '&batch=1');
  onTestFinished(target.remove);
  const settings = { ...env, CATCHWORD_SINK_FILE: target.url, CATCHWORD_SINK_FILE_SECRET: target.secret ?? '' };
  bench.change(books(30, 1));
  const running = start(['relay'], settings, directory);
  await until('it is stopped', () => bench.store.sinks.get('file')?.state === 'stopped');
  expect(await list()).toMatchObject([{ parked: 19 }]);
  hook.refuses = false;
  expect(await sink('retry', 'file')).toMatchObject({ code: 0, stdout: 'file gets 19 events again\n' });
  await until('all are there', () => new Set(target.events.map(({ subject }) => subject)).size === 30);
  await until('none is parked', async () => bench.store.sinks.parkedCount(1) === 0);
  // The error is cleared a turn later.
  await expect.poll(list).toMatchObject([{ state: 'live', parked: 0 }]);
  expect(await sink('retry', 'file')).toMatchObject({ code: 0, stdout: 'file is resumed; nothing is parked\n' });
  running.child.kill('SIGTERM');
  expect(await running.ended).toMatchObject({ code: 0 });
});

it('skips every refused event', async () => {
  const { bench, sink } = open();
  bench.change(books(4, 1));
  writeUnder(bench.store.relayLease, Date.now(), ({ sinks }) => {
    sinks.configure({ name: 'file', kind: 'jsonl', address: 'out.jsonl', identity: 'out.jsonl' });
    for (const change of bench.events().slice(0, 3)) {
      sinks.park(1, { seq: change.seq, reason: 'it is poison', at: 0, change });
    }
    sinks.stop(1, 'it refuses', 0, 4);
  });
  expect(await sink('skip', 'file')).toMatchObject({ code: 2, stderr: expect.stringContaining('or --all') });
  expect(await sink('skip', 'file', '1', '--all')).toMatchObject({ code: 2 });
  expect(await sink('skip', 'file', '--all')).toMatchObject({
    code: 0,
    stdout: '4 events skipped; later ones of the same products are delivered now\n',
  });
  expect(bench.store.sinks.parkedCount(1)).toBe(0);
  expect(bench.store.sinks.get('file')?.state).toBe('running');
  expect(await sink('skip', 'file', '--all')).toMatchObject({ code: 0, stdout: 'file has not refused any event\n' });
});

it.each([
  ['paused', ({ store }) => store.request(({ sinks }) => sinks.setState(1, 'paused'))],
  [
    'stopped',
    ({ store }) => writeUnder(store.relayLease, 0, ({ sinks }) => sinks.stop(1, 'it refused too many', 0, null)),
  ],
] satisfies [string, (bench: Harness) => void][])(
  'skip says that a %s sink does not deliver yet',
  async (state, halt) => {
    const { bench, sink } = open();
    bench.change(books(2, 1));
    bench.change(books(2, 2));
    writeUnder(bench.store.relayLease, Date.now(), ({ sinks }) => {
      sinks.configure({ name: 'file', kind: 'jsonl', address: 'out.jsonl', identity: 'out.jsonl' });
      for (const change of bench.events().slice(0, 2)) {
        sinks.park(1, { seq: change.seq, reason: 'it is poison', at: 0, change });
      }
    });
    halt(bench);
    const waits = `wait, because file is ${state}: npx catchword sink resume file\n`;
    expect(await sink('skip', 'file', '1')).toMatchObject({
      code: 0,
      stdout: `1 event skipped; later ones of the same products ${waits}`,
    });
    expect(await sink('skip', 'file', '--all')).toMatchObject({
      code: 0,
      stdout: `1 event skipped; later ones of the same products ${waits}`,
    });
    expect(bench.store.sinks.get('file')?.state).toBe(state);
  },
);

it('forgets a sink whose setting was removed', async () => {
  const { bench, directory, env, sink, list } = open();
  bench.change(books(2, 1));
  await relay(bench, env);
  expect(await sink('forget', 'file')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('file is configured by CATCHWORD_SINK_FILE'),
  });
  const { CATCHWORD_SINK_FILE: _, ...without } = env;
  const running = start(['relay'], env, directory);
  await running.shows('sink is open');
  expect(await runHere(['sink', 'forget', 'file'], without, directory)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('still feeds file'),
  });
  running.child.kill('SIGTERM');
  await running.ended;
  expect(await runHere(['sink', 'forget', 'file'], without, directory)).toMatchObject({ code: 0 });
  expect(bench.store.sinks.list()).toEqual([]);
  // Configured again, it continues where the file ends.
  bench.change(books(1, 2));
  await relay(bench, env);
  const lines = readFileSync(join(directory, 'out.jsonl'), 'utf8').trimEnd().split('\n');
  expect(lines).toHaveLength(3);
  expect(await list()).toMatchObject([{ name: 'file', cursor: 3 }]);
});

it('lists stores that keep every event, with their size', async () => {
  const { bench, directory, env, sink, list } = open();
  bench.change(books(2, 1));
  await relay(bench, env);
  expect((await sink('list')).stdout).toContain(
    'file: keeps every event (0.0 MB now); to limit it, add rotate=100MB&keep=N',
  );
  expect(await list()).toMatchObject([{ size: '0.0 MB', limit: null, identity: join(directory, 'out.jsonl') }]);
  const limited = { ...env, CATCHWORD_SINK_FILE: `${env.CATCHWORD_SINK_FILE}?rotate=1MB&keep=3` };
  expect((await runHere(['sink', 'list'], limited, directory)).stdout).not.toContain('keeps every event');
});

it('rejects a relay without sinks', async () => {
  const { directory, env } = open();
  const { CATCHWORD_SINK_FILE: _, ...without } = env;
  expect(await runHere(['relay'], without, directory)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('CATCHWORD_SINK_<NAME> is not set'),
  });
});

it('rejects unknown sinks, events and settings', async () => {
  const { bench, directory, env, sink } = open();
  bench.change(books(1, 1));
  expect(await sink('pause', 'unknown')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('has no sink unknown'),
  });
  await relay(bench, env);
  expect(await sink('replay', 'file', '--from', '9')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('file has not had 9 yet: it is at 1'),
  });
  expect(await sink('replay', 'file', '--from', 'x')).toMatchObject({ code: 2 });
  expect(await sink('skip', 'file', '1')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('has not refused'),
  });
  for (const [url, message] of [
    ['ftp://host/', 'its value is not a valid sink address'],
    ['jsonl:x?refused=maybe', 'the value of refused is not valid'],
    ['jsonl:x?rotate=big', 'the value of rotate is not valid'],
  ] as const) {
    const wrong = await runHere(['relay'], { ...env, CATCHWORD_SINK_BAD: url }, directory);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining(`CATCHWORD_SINK_BAD: ${message}`) });
  }
});

it.each([
  ['webhook+http://127.0.0.1:1/hook#allow=private', 2],
  ['webhook+https://127.0.0.1:1/hook#allow=private', null],
  ['postgres://shop:pass#word@127.0.0.1/shop', 2],
])('reports that .env cut an address off at its #: %s', async (address, code) => {
  const { bench, directory, env } = open();
  bench.change(books(1, 1));
  const { CATCHWORD_SINK_FILE: _, ...without } = env;
  writeFileSync(join(directory, '.env'), `CATCHWORD_SINK_HOOK=${address}\n`);
  const running = startService(['relay'], without, directory);
  await running.shows('In .env, quote an address that contains #');
  if (code === null) running.child.kill('SIGTERM');
  expect((await running.ended).code).toBe(code ?? 0);
});

it('reads a quoted address from .env', async () => {
  const { bench, directory, env } = open();
  const hook = await webhookTarget(() => ({ status: 204 }));
  onTestFinished(hook.remove);
  const { CATCHWORD_SINK_FILE: _, ...without } = env;
  writeFileSync(join(directory, '.env'), `CATCHWORD_SINK_FILE="${hook.url}"\n`);
  bench.change(books(2, 1));
  const running = start(['relay'], { ...without, CATCHWORD_SINK_FILE_SECRET: hook.secret ?? '' }, directory);
  await isConfirmed(bench);
  running.child.kill('SIGTERM');
  expect(await running.ended).toMatchObject({ code: 0, stdout: '' });
  expect(hook.events).toHaveLength(2);
});

it('does not show secrets anywhere', { timeout: 60_000 }, async () => {
  const { bench, directory, env } = open();
  const hook = await webhookTarget(() => ({ status: 500 }));
  onTestFinished(hook.remove);
  bench.change(books(3, 1));
  const secrets = [
    'pa55word-of-postgres',
    'pa55word-of-redis',
    'pa55word-of-nats',
    'key-of-the-hook',
    'path-of-the-hook',
    hook.secret ?? '',
  ];
  writeFileSync(join(directory, 'shop.url'), `postgres://shop:${secrets[0]}@127.0.0.1:1/shop`);
  const settings = {
    ...env,
    LOG_LEVEL: 'trace',
    CATCHWORD_SINK_SHOP_FILE: join(directory, 'shop.url'),
    CATCHWORD_SINK_STREAM: `redis://user:${secrets[1]}@127.0.0.1:1`,
    CATCHWORD_SINK_BUS: `nats://user:${secrets[2]}@127.0.0.1:1`,
    CATCHWORD_SINK_HOOK: hook.url.replace('/hook?key=of+the+receiver', `/${secrets[4]}?key=${secrets[3]}`),
    CATCHWORD_SINK_HOOK_SECRET: secrets[5] ?? '',
  };
  const running = start(['relay'], settings, directory);
  await until('all have failed', () => {
    const failed = bench.store.sinks.list().filter(({ error }) => error !== null);
    return failed.length === 4;
  });
  running.child.kill('SIGTERM');
  const ended = await running.ended;
  const list = await runHere(['sink', 'list'], settings, directory);
  const listed = await runHere(['sink', 'list', '--json'], settings, directory);
  const doctor = await runHere(
    ['doctor'],
    { ...settings, CATCHWORD_API_KEY: 'K', CATCHWORD_BASE_URL: 'http://127.0.0.1:1' },
    directory,
  );
  const parked = await runHere(['sink', 'parked', 'hook'], settings, directory);
  expect(list.stdout).toContain('127.0.0.1:1/shop products');
  expect(doctor.stdout).toContain('shop (postgres');
  bench.store.walCheckpoint();
  const folder = join(bench.store.path, '..');
  const files = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'latin1'));
  const shown = [ended, list, listed, doctor, parked].flatMap(({ stdout, stderr }) => [stdout, stderr]);
  for (const secret of secrets) {
    for (const text of [...shown, ...files]) expect(text.includes(secret), secret).toBe(false);
  }
});
