import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { type Harness, openHarness, until } from '../../src/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import type { RelayWriter } from '../../src/store/schema/writers.ts';
import { books } from '../relay/feeding.ts';
import { webhookTarget } from '../relay/targets.ts';
import { start, startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';

interface Listed {
  readonly name: string;
  readonly [field: string]: unknown;
}

/** A mirror, and settings with the sink `file`. */
function open() {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  const directory = temporaryDirectory();
  const without: Record<string, string> = {
    CATCHWORD_BASE_URL: 'http://service.example',
    CATCHWORD_DB: bench.store.path,
  };
  const out = join(directory, 'out.jsonl');
  const env = { ...without, CATCHWORD_SINK_FILE: `jsonl:${out}` };
  const sink = (args: string, settings: Record<string, string> = env) =>
    runHere(['sink', ...args.split(' ')], settings, directory);
  /** Expects that `sink` fails with this code and text, or prints this text. */
  async function expectSink(
    args: string,
    code: number,
    text: string | RegExp,
    settings?: Record<string, string>,
  ): Promise<void> {
    const { stdout, stderr, ...ended } = await sink(args, settings);
    expect(ended.code, args).toBe(code);
    expect(code === 0 ? stdout : stderr, args).toMatch(text);
  }
  const list = async () => JSON.parse((await sink('list --json')).stdout) as Listed[];
  const lines = () => readFileSync(out, 'utf8').trimEnd().split('\n');
  const row = (name: string) => bench.store.sinks.get(name);
  async function startRelay(settings: Record<string, string>) {
    const running = start(['relay'], settings, directory);
    await running.shows('sink is open');
    return running;
  }
  return { bench, directory, out, env, without, sink, expectSink, list, lines, row, startRelay };
}

/** Writes as a relay does. */
function write({ store }: Harness, work: (writer: RelayWriter) => void): void {
  writeUnder(store.relayLease, Date.now(), work);
}

/** Adds a sink; with a position of its own if `isOpened`. */
function addSink(bench: Harness, name: string, isOpened: boolean): void {
  write(bench, ({ sinks }) => {
    sinks.configure({ name, kind: 'jsonl', address: 'o', identity: 'o' });
    if (isOpened) sinks.setPosition(bench.store.sinks.get(name)?.id ?? 0, 1, 2);
  });
}

/** The id of the sink `file`. */
function idOf({ store }: Harness): number {
  return store.sinks.get('file')?.id ?? 0;
}

/** Parks these events as refused by the sink `file`. */
function park(bench: Harness, count: number): void {
  write(bench, ({ sinks }) => {
    sinks.configure({ name: 'file', kind: 'jsonl', address: 'out.jsonl', identity: 'out.jsonl' });
    for (const change of bench.events().slice(0, count)) {
      sinks.park(idOf(bench), { seq: change.seq, reason: 'it is poison', at: 0, change });
    }
  });
}

/** Runs a relay until every event is confirmed. */
async function relay(bench: Harness, env: Record<string, string>): Promise<void> {
  for (const sink of checkedSettings(env, 'nothing').sinks) bench.start(sinkConfig(sink));
  await isConfirmed(bench);
  await bench.stop();
}

async function isConfirmed(bench: Harness): Promise<void> {
  const last = bench.store.changes.lastSeq();
  await until('all is confirmed', () => bench.store.sinks.get('file')?.cursor === last);
}

it('sink list, pause, resume and replay show and move a sink', async () => {
  const { bench, out, env, sink, expectSink, list, lines } = open();
  bench.change(books(5, 1));
  expect(await list()).toMatchObject([
    { name: 'file', kind: 'jsonl', address: out, identity: out, state: 'new', error: null, lag_records: null },
  ]);
  await relay(bench, env);
  bench.change(books(3, 2));
  const counts = { cursor: 5, lag_records: 3, delivered: 5, parked: 0 };
  expect(await list()).toMatchObject([
    { name: 'file', kind: 'jsonl', state: 'live', ...counts, error: null, gaps: [] },
  ]);
  const { stdout } = await sink('list');
  expect(stdout).toMatch(
    /^sink +state +behind +confirmed up to +events\/s +parked +where\nfile +live +3 changes, for .* 5 +\d+ +0 +jsonl \S+\n/,
  );

  await expectSink('pause file', 0, 'file is paused\n');
  await expectSink('pause file', 2, 'it is paused');
  expect(await list()).toMatchObject([{ state: 'paused' }]);
  await expectSink('resume file', 0, 'file resumes after change 5\n');
  await relay(bench, env);
  await expectSink('replay file --from 7', 0, 'file gets every change from 7 on\n');
  await relay(bench, env);
  await expectSink('replay file', 0, 'file gets every product');
  await relay(bench, env);
  const seqs = lines().map((line) => Number((JSON.parse(line) as { sequence: string }).sequence));
  expect(seqs).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 7, 8, 4, 5, 6, 7, 8]);
});

it('sink parked lists parked events, and sink skip skips one', async () => {
  const { bench, sink, expectSink, list } = open();
  bench.change(books(4, 1));
  park(bench, 1);
  const [, change] = bench.events();
  if (change === undefined) throw new Error('no second event');
  write(bench, ({ sinks }) =>
    sinks.parkWaiting(idOf(bench), [{ seq: 2, reason: 'waits', at: 0, change: { ...change, vbid: 'P0' } }]),
  );
  await expectSink(
    'parked file',
    0,
    /1 {2}P0 {3}created {2}rejected by the sink +1970-01-01 00:00:00 UTC {2}it is poison\n/,
  );
  const parked = async () => JSON.parse((await sink('parked file --json')).stdout) as unknown;
  const refused = { seq: 1, vbid: 'P0', op: 'created', state: 'refused' };
  expect(await parked()).toMatchObject([refused, { seq: 2, state: 'waiting' }]);
  expect(await list()).toMatchObject([{ parked: 2 }]);
  await expectSink('skip file 2', 2, 'has not refused event 2');
  await expectSink('skip file 1', 0, '1 event skipped');
  expect(await parked()).toMatchObject([{ seq: 2, state: 'ready' }]);
});

it('sink retry redelivers refused events, and resumes the sink', { tags: ['slow'] }, async () => {
  const { bench, directory, env, expectSink, list } = open();
  const hook = { refuses: true };
  const target = await webhookTarget(() => ({ status: hook.refuses ? 422 : 204 }), '&batch=1');
  onTestFinished(target.remove);
  const settings = { ...env, CATCHWORD_SINK_FILE: target.url, CATCHWORD_SINK_FILE_SECRET: target.secret ?? '' };
  bench.change(books(30, 1));
  const running = start(['relay'], settings, directory);
  await until('it is stopped', () => bench.store.sinks.get('file')?.state === 'stopped');
  expect(await list()).toMatchObject([{ parked: 19 }]);
  hook.refuses = false;
  await expectSink('retry file', 0, 'file gets 19 events again\n');
  await until('all are there', () => new Set(target.events.map(({ subject }) => subject)).size === 30);
  await until('none is parked', async () => bench.store.sinks.parkedCount(idOf(bench)) === 0);
  // The error is cleared a turn later.
  await expect.poll(list).toMatchObject([{ state: 'live', parked: 0 }]);
  await expectSink('retry file', 0, 'file is resumed; nothing is parked\n');
  expect(await running.stop()).toMatchObject({ code: 0 });
});

it('sink skip --all skips every refused event', async () => {
  const { bench, expectSink } = open();
  bench.change(books(4, 1));
  park(bench, 3);
  write(bench, ({ sinks }) => sinks.stop(idOf(bench), 'it refuses', 0, 4));
  await expectSink('skip file', 2, 'or --all');
  await expectSink('skip file 1 --all', 2, 'or --all');
  await expectSink('skip file --all', 0, '4 events skipped; later ones of the same products are delivered now\n');
  expect(bench.store.sinks.parkedCount(idOf(bench))).toBe(0);
  const sink = bench.store.sinks.get('file');
  expect(sink?.state).toBe('running');
  await expectSink('skip file --all', 0, 'file has not refused any event\n');
  expect(bench.store.sinks.get('file')).toEqual(sink);
});

it.each([
  ['paused', (bench) => bench.store.request(({ sinks }) => sinks.setState(idOf(bench), 'paused'))],
  ['stopped', (bench) => write(bench, ({ sinks }) => sinks.stop(idOf(bench), 'it refused too many', 0, null))],
] satisfies [string, (bench: Harness) => void][])(
  'sink skip says that a %s sink does not deliver yet',
  async (state, halt) => {
    const { bench, expectSink } = open();
    bench.change(books(2, 1));
    bench.change(books(2, 2));
    park(bench, 2);
    halt(bench);
    const waits = `wait, because file is ${state}\nresume it with: npx catchword sink resume file\n`;
    await expectSink('skip file 1', 0, `1 event skipped; later ones of the same products ${waits}`);
    await expectSink('skip file --all', 0, `1 event skipped; later ones of the same products ${waits}`);
    expect(bench.store.sinks.get('file')?.state).toBe(state);
  },
);

/** The same with a fed sink `file`, for which an event is parked, and settings that name it `books`. */
async function fed() {
  const opened = open();
  const { bench, env, without, row } = opened;
  bench.change(books(3, 1));
  await relay(bench, env);
  const [change] = bench.events();
  if (change === undefined) throw new Error('no event');
  const id = row('file')?.id ?? 0;
  write(bench, ({ sinks }) => {
    sinks.park(id, { seq: 1, reason: 'it is poison', at: 0, change });
    sinks.addGap({ id, after: 1, upTo: 2, at: 0 });
  });
  return { ...opened, id, renamed: { ...without, CATCHWORD_SINK_BOOKS: env.CATCHWORD_SINK_FILE } };
}

it('sink rename moves position, parked events and gaps to the new name, and delivers only what follows', async () => {
  const { bench, renamed, id, row, sink, expectSink, lines, startRelay } = await fed();
  const { name: _name, ...before } = row('file') ?? { name: '' };
  const stdout = 'file is books now, with its position and parked events\n';
  expect(await sink('rename file books', renamed)).toMatchObject({ code: 0, stdout });
  expect(row('file')).toBeUndefined();
  expect(row('books')).toEqual({ ...before, name: 'books' });
  expect(bench.store.sinks.parked(id)).toMatchObject([{ seq: 1, state: 'refused' }]);
  expect(bench.store.sinks.gaps(id)).toEqual([{ after: 1, upTo: 2, at: 0 }]);
  bench.change(books(1, 2));
  const running = await startRelay(renamed);
  // The newest change is of the product whose event is parked.
  await until('it waits', () => bench.store.sinks.parkedCount(id) === 2);
  await expectSink('retry books', 0, '', renamed);
  await until('it is delivered', () => lines().length === 5);
  await running.stop();
  expect(bench.store.sinks.list()).toHaveLength(1);
});

it('sink rename says which settings to rename, and exchanges two names in three steps', async () => {
  const { bench, row, expectSink } = await fed();
  addSink(bench, 'other', true);
  const [file, id] = [row('file')?.id, row('other')?.id];
  const change = 'before you start a daemon, rename CATCHWORD_SINK_FILE to CATCHWORD_SINK_TMP\n';
  await expectSink('rename file tmp', 0, change);
  expect(row('tmp')?.id).toBe(file);
  await expectSink('rename other other_2', 0, 'other is other_2 now');
  await expectSink('rename tmp other', 0, 'tmp is other now');
  expect([row('other')?.id, row('other_2')?.id]).toEqual([file, id]);
});

it('sink rename takes the name of a sink that was never opened', async () => {
  const { bench, row, expectSink } = await fed();
  addSink(bench, 'books', false);
  const id = row('file')?.id;
  await expectSink('rename file books', 0, 'file is books now');
  expect(bench.store.sinks.list()).toMatchObject([{ name: 'books', id }]);
});

it('sink rename is offered by the log of a relay whose settings were renamed without it', async () => {
  const { bench, directory, renamed, id, row, lines, expectSink } = await fed();
  const running = start(['relay'], renamed, directory);
  await running.shows('if it has another name now: npx catchword sink rename');
  // The file keeps the cursor.
  await until('it is open', () => row('books')?.cursor === 3);
  await running.stop();
  expect(lines()).toHaveLength(3);
  expect(bench.store.sinks.parkedCount(id)).toBe(1);
  for (const step of ['rename books tmp', 'rename file books', 'forget tmp']) await expectSink(step, 0, '', renamed);
  expect(bench.store.sinks.list()).toMatchObject([{ name: 'books', id, cursor: 3 }]);
});

it('sink rename refuses, and changes nothing', async () => {
  const { bench, env, row, expectSink, startRelay } = await fed();
  addSink(bench, 'books', true);
  const before = bench.store.sinks.list();
  await expectSink('rename none shop', 1, 'the mirror has no sink none');
  await expectSink('rename file books', 2, 'books is in use: it has a position of its own');
  await expectSink('rename file file', 2, 'file is in use');
  await expectSink('rename file My-Shop', 2, 'My-Shop cannot be the name of a sink');
  await expectSink('rename books file', 2, 'file is in use');
  const elsewhere = { ...env, CATCHWORD_SINK_SHOP: 'jsonl:/elsewhere.jsonl' };
  await expectSink('rename file shop', 2, 'CATCHWORD_SINK_SHOP is the address of another store than ', elsewhere);
  expect(bench.store.sinks.list()).toEqual(before);
  const running = await startRelay(env);
  await expectSink('rename file shop', 2, 'a running daemon (or relay) still feeds file');
  await running.stop();
  expect(row('shop')).toBeUndefined();
});

it('sink forget forgets a sink whose setting was removed', { tags: ['slow'] }, async () => {
  const { bench, env, without, expectSink, list, lines, startRelay } = open();
  bench.change(books(2, 1));
  await relay(bench, env);
  await expectSink('forget file', 2, 'file is configured by CATCHWORD_SINK_FILE');
  const running = await startRelay(env);
  await expectSink('forget file', 2, 'still feeds file', without);
  await running.stop();
  await expectSink('forget file', 0, '', without);
  expect(bench.store.sinks.list()).toEqual([]);
  // Configured again, it continues where the file ends.
  bench.change(books(1, 2));
  await relay(bench, env);
  expect(lines()).toHaveLength(3);
  expect(await list()).toMatchObject([{ name: 'file', cursor: 3 }]);
});

it('sink list names stores that keep every event, with their size', async () => {
  const { bench, out, env, sink, expectSink, list } = open();
  bench.change(books(2, 1));
  await relay(bench, env);
  await expectSink('list', 0, 'file: keeps: every event (0.0 MB now); to limit it, add rotate=100MB&keep=N');
  expect(await list()).toMatchObject([{ size: '0.0 MB', limit: null, identity: out }]);
  const limited = { ...env, CATCHWORD_SINK_FILE: `${env.CATCHWORD_SINK_FILE}?rotate=1MB&keep=3` };
  expect((await sink('list', limited)).stdout).not.toContain('every event');
});

it('relay is rejected without sinks', async () => {
  const { directory, without } = open();
  const { code, stderr } = await runHere(['relay'], without, directory);
  expect(code).toBe(2);
  expect(stderr).toContain('CATCHWORD_SINK_<NAME> is not set');
});

it('sink commands reject unknown sinks, events and settings', async () => {
  const { bench, directory, env, expectSink } = open();
  bench.change(books(1, 1));
  await expectSink('pause unknown', 1, 'has no sink unknown');
  await relay(bench, env);
  await expectSink('replay file --from 9', 2, 'file has not had 9 yet: it is at 1');
  await expectSink('replay file --from x', 2, '--from: "x" is not a whole number');
  await expectSink('skip file 1', 2, 'has not refused');
  for (const [url, message] of [
    ['ftp://host/', 'its value is not a valid sink address'],
    ['jsonl:x?refused=maybe', 'the value of refused is not valid'],
    ['jsonl:x?rotate=big', 'the value of rotate is not valid'],
  ] as const) {
    const { stdout } = await runHere(['doctor'], { ...env, CATCHWORD_SINK_BAD: url }, directory);
    expect(stdout).toContain(`CATCHWORD_SINK_BAD: ${message}`);
  }
});

it.each([
  'webhook+http://127.0.0.1:1/hook#allow=private',
  'webhook+https://127.0.0.1:1/hook#allow=private',
  'postgres://shop:pass#word@127.0.0.1/shop',
])('relay reports that .env cut an address off at its #: %s', async (address) => {
  const { bench, directory, without } = open();
  bench.change(books(1, 1));
  writeFileSync(join(directory, '.env'), `CATCHWORD_SINK_HOOK=${address}\n`);
  const running = startService(['relay'], without, directory);
  await running.shows('In .env, quote an address that contains #');
  running.child.kill('SIGTERM');
  expect((await running.ended).code).toBe(0);
});

it('relay reads a quoted address from .env', { tags: ['slow'] }, async () => {
  const { bench, directory, without } = open();
  const hook = await webhookTarget(() => ({ status: 204 }));
  onTestFinished(hook.remove);
  writeFileSync(join(directory, '.env'), `CATCHWORD_SINK_FILE="${hook.url}"\n`);
  bench.change(books(2, 1));
  const running = start(['relay'], { ...without, CATCHWORD_SINK_FILE_SECRET: hook.secret ?? '' }, directory);
  await isConfirmed(bench);
  expect(await running.stop()).toMatchObject({ code: 0, stdout: '' });
  expect(hook.events).toHaveLength(2);
});

it('secrets of sinks appear nowhere', { tags: ['slow'] }, async () => {
  const { bench, directory, env, sink } = open();
  const hook = await webhookTarget(() => ({ status: 500 }));
  onTestFinished(hook.remove);
  bench.change(books(3, 1));
  const passwords = ['pa55word-of-postgres', 'pa55word-of-redis', 'pa55word-of-nats'];
  const secrets = [...passwords, 'key-of-the-hook', 'path-of-the-hook', hook.secret ?? ''];
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
  const failed = () => bench.store.sinks.list().filter(({ error }) => error !== null);
  await until('all have failed', () => failed().length === 4);
  running.child.kill('SIGTERM');
  const ended = await running.ended;
  const list = await sink('list', settings);
  const listed = await sink('list --json', settings);
  const nowhere = { CATCHWORD_API_KEY: 'K', CATCHWORD_BASE_URL: 'http://127.0.0.1:1' };
  const doctor = await runHere(['doctor'], { ...settings, ...nowhere }, directory);
  const parked = await sink('parked hook', settings);
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
