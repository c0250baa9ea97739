import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text as readText } from 'node:stream/consumers';
import { startRawSource } from '@catchword/testing/raw-source';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { serve } from '../../packages/client/test/connection.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { temporaryMirror } from '../relay/feeding.ts';
import { memory } from '../relay/memory.ts';
import { type Printed, runHere } from '../support/in-process.ts';
import { settingsFor } from '../support/mirror.ts';

/** Characters that a terminal obeys, or that reorder text. */
const UNPRINTABLE = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u;
/** JSON must escape some of these characters, and may escape the others. */
const TITLE = '\\u001b[2JBook\\u009b \u202eof\u009d \u007fodd titles';
const SHOWN = '\\u001b[2JBook\\u009b \\u202eof\\u009d \\u007fodd titles';

function expectPrintable({ stdout, stderr }: Printed): void {
  expect(`${stdout}${stderr}`.replaceAll('\n', '')).not.toMatch(UNPRINTABLE);
}

it('commands print titles and reasons without control characters', async () => {
  const odd = `{"vbid":"A","title":"${TITLE}"}`;
  const unusable = `{"vbid":"","title":"${TITLE}"}`;
  const source = await startRawSource([odd, unusable].map((item) => Buffer.from(item)));
  const directory = temporaryDirectory();
  const settings = settingsFor(source.url, join(directory, 'catalog.db'), { LOG_LEVEL: 'debug' });
  const sync = await runHere(['sync'], settings, directory);
  expect(sync.code).toBe(0);
  expectPrintable(sync);

  for (const args of ['run 1', 'search titles', 'product A --history']) {
    const ended = await runHere(args.split(' '), settings, directory);
    expect(ended.code, args).toBe(0);
    expectPrintable(ended);
    expect(ended.stdout, args).toContain(args === 'run 1' ? '\\u001b[2J' : SHOWN);
  }
  source.items = [Buffer.from(`{"vbid":"A","title":"${TITLE}!"}`)];
  const verified = await runHere(['verify'], settings, directory);
  expect(verified).toMatchObject({ code: 3, stdout: expect.stringContaining(`${SHOWN}!`) as string });
  expectPrintable(verified);
  // JSON is not changed.
  const json = await runHere(['product', 'A', '--json'], settings, directory);
  expect(json.stdout).toContain(odd);
  expect(JSON.parse(json.stdout)).toMatchObject({ title: JSON.parse(`"${TITLE}"`) });
}, 60_000);

it('sync prints a part of a page that is not JSON without control characters', async () => {
  const reply = { headers: { 'content-type': 'application/json' }, body: '\u001b[2J\u009d\u202e oops' };
  const { url } = await serve(() => reply);
  const directory = temporaryDirectory();
  const settings = settingsFor(url, join(directory, 'catalog.db'), { LOG_LEVEL: 'debug' });
  const ended = await runHere(['sync'], settings, directory);
  expect(ended.code).toBe(1);
  expectPrintable(ended);
  expect(ended.stderr).toContain("the page is not JSON (Unexpected token '\\u001b')");
  const runs = await runHere(['runs'], settings, directory);
  expectPrintable(runs);
});

it('commands print what a store says without control characters, colours included', () => {
  const setting = { env: 'CATCHWORD_SINK_A', name: 'a', url: 'postgres://u:topsecret@h/shop', secret: undefined };
  const { errorText } = sinkConfig(setting);
  const said = 'relation \u001b[8m"books"\u001b[2J\u009b1m \u202etxet\r\n of topsecret';
  const shown = errorText(new Error(said));
  expect(shown).not.toMatch(UNPRINTABLE);
  expect(shown).toBe('relation \\u001b[8m"books"\\u001b[2J\\u009b1m \\u202etxet  of [secret]');
});

it('sink list and status escape an error that the mirror has kept', async () => {
  const mirror = temporaryMirror();
  mirror.start(memory().config());
  await mirror.caughtUp();
  await mirror.stop();
  const error = 'hidden \u001b[8m from here \u009b31m';
  writeUnder(mirror.store.relayLease, 0, ({ sinks }) => sinks.fail(mirror.sink().id, error, 0, null));
  for (const args of ['status', 'sink list']) {
    const ended = await runHere(
      args.split(' '),
      { CATCHWORD_DB: mirror.store.path, FORCE_COLOR: '1' },
      temporaryDirectory(),
    );
    expect(ended.stdout, args).toContain('hidden \\u001b[8m from here \\u009b31m');
  }
});

it('commands on a terminal print no colour that a product has', { tags: ['slow'], timeout: 60_000 }, async () => {
  const evil = String.raw`\u001b[8mx\u009b8m\u202e`;
  const text = (version: number) =>
    ['title', 'publisher', 'format', 'language', 'edition'].map((name) => `"${name}":"${evil}${version}"`).join(',');
  const product = (version: number) =>
    Buffer.from(
      `{"vbid":"A\u202e","contributors":[{"name":"${evil}"}],"${evil}":"${evil}${version}",${text(version)}}`,
    );
  const unusable = Buffer.from(`{"vbid":"B${evil}",${text(1)}}`);
  const source = await startRawSource([product(1), unusable]);
  const directory = temporaryDirectory();
  const settings = settingsFor(source.url, join(directory, 'catalog.db'), {
    CATCHWORD_SINK_SHOP: `jsonl:${join(directory, 'out.jsonl')}`,
    CATCHWORD_REMOVAL_LIMIT: '0',
  });
  const printed: string[] = [];
  const asked = async (...args: string[]): Promise<void> => {
    const stdout = Object.assign(new PassThrough(), { isTTY: true });
    const shown = readText(stdout);
    const { stderr } = await runHere(args, settings, directory, { stdout });
    stdout.end();
    printed.push(`${args[0]}: ${await shown}${stderr}`);
  };
  await asked('sync');
  source.items = [product(2), unusable];
  for (const line of ['verify', 'sync', 'status', 'runs', 'run 1', 'search x', 'rejected', 'sink list'])
    await asked(...line.split(' '));
  const key = 'A\u202e';
  for (const args of [
    ['product', key, '--history'],
    ['product', key, '--sink', 'shop'],
    ['sink', 'preview', 'shop', '--fields', 'title'],
  ])
    await asked(...args);
  source.items = [unusable];
  await asked('sync', '--full');
  await asked('run', '3');
  const isObeyed = (one: string): boolean => one.includes('\u001b[8m') || /\u009b|\p{Bidi_Control}/u.test(one);
  expect(printed.filter(isObeyed)).toEqual([]);
  // Its own colours are there, and the texts.
  expect(printed.join('')).toContain('\u001b[1m');
  expect(printed.filter((one) => one.includes('\\u001b[8m')).length).toBeGreaterThan(5);
});
