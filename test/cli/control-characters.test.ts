import { join } from 'node:path';
import { expect, it } from 'vitest';
import { serve } from '../client/connection.ts';
import { type Printed, runHere } from '../support/in-process.ts';
import { settingsFor, temporaryDirectory } from '../support/mirror.ts';
import { startRawSource } from '../support/raw-source.ts';

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
}, 60_000);
