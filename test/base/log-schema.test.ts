import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOG_FIELDS } from '@catchword/base/log';
import { serveHttp } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { runOnTerminal, startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { settingsFor } from '../support/mirror.ts';
import { place } from '../support/place.ts';

const PAGE = readFileSync(new URL('../../docs/log.md', import.meta.url), 'utf8');

/** The documented fields and their types. */
const TABLE = new Map(
  [...PAGE.matchAll(/^\| `(\w+)` \| ([\w ]+) \|/gm)].map(([, name = '', type = '']) => [name, type]),
);

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const HOLDS: Record<string, (value: unknown) => boolean> = {
  number: (value) => typeof value === 'number',
  string: (value) => typeof value === 'string',
  time: (value) => typeof value === 'string' && ISO.test(value),
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'array of strings': (value) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
};

type Line = Readonly<Record<string, unknown>>;

/** Expects JSON lines, whose fields and types are in the table. */
function checkedLines(text: string): Line[] {
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
  for (const line of lines) {
    expect(Object.keys(line)).toEqual(expect.arrayContaining(['time', 'level', 'pid', 'msg']));
    for (const [name, value] of Object.entries(line)) {
      const type = TABLE.get(name) ?? 'not in the table';
      expect(value === null || HOLDS[type]?.(value), `${name} (${type}) in ${JSON.stringify(line)}`).toBe(true);
    }
  }
  return lines;
}

it('docs/log.md documents exactly the fields of the log', () => {
  const documented = Object.fromEntries([...TABLE].map(([name, type]) => [name, type.replace('array of ', '')]));
  expect(documented).toEqual(LOG_FIELDS);
  for (const name of Object.keys(LOG_FIELDS)) expect(name).toMatch(/^[a-z][a-zA-Z]*$/);
});

/** Starts a server that answers `first` to its first request and `later` to the others. */
async function receiver(first: number, later: number): Promise<string> {
  let requests = 0;
  return await serveHttp((request, response) => {
    request.resume().on('end', () => response.writeHead(requests++ === 0 ? first : later).end());
  });
}

it('a daemon logs only documented fields through a load, failures and a stop', { tags: ['slow'] }, async () => {
  const { sandbox, directory, settings } = await place(
    { items: 300 },
    {
      LOG_LEVEL: 'trace',
      CATCHWORD_HTTP_PORT: '0',
      CATCHWORD_DELTA_CRON: '* * * * * *',
      CATCHWORD_SINK_FILE: 'jsonl:events.jsonl',
      CATCHWORD_SINK_HOOK: `webhook+${await receiver(500, 204)}/hook#allow=private`,
      CATCHWORD_SINK_HOOK_SECRET: `whsec_${Buffer.from('a secret of thirty-two bytes, so').toString('base64')}`,
    },
  );
  expect((await runHere(['sync'], settings, directory)).code).toBe(0);
  const daemon = startService(['daemon'], settings, directory);
  await daemon.shows('run complete');
  await daemon.shows('the initial load, or the reconciliation, is delivered');
  await daemon.shows('sink failed, retrying');
  await daemon.shows('sink recovered');
  const second = startService(['daemon'], settings, directory);
  await second.shows('standing by');
  second.child.kill('SIGTERM');
  await sandbox.stop();
  await daemon.shows('run stopped');
  const { stderr, code } = await daemon.stop();
  expect(code).toBe(0);
  const lines = checkedLines(stderr);
  const messages = lines.map(({ msg }) => msg);
  expect(messages).toEqual(expect.arrayContaining(['started', 'listening', 'run started', 'stopping', 'stopped']));
  expect(lines.find(({ msg }) => msg === 'run complete')).toMatchObject({
    run: 2,
    kind: 'delta',
    result: { state: 'complete', created: 0, startedAt: expect.stringMatching(ISO) },
  });
  expect(lines.find(({ msg }) => msg === 'run stopped')).toMatchObject({
    code: 'SOURCE_UNAVAILABLE',
    pauseMs: expect.any(Number),
    nextTryAt: expect.stringMatching(ISO),
  });
  checkedLines((await second.ended).stderr);
});

it.each([
  ['whose receiver is gone', 410, '', { code: 'SINK_GONE', reason: expect.stringContaining('answered 410') }],
  ['that rejects an event under refused=stop', 422, '&refused=stop', { code: 'SINK_REFUSED' }],
  ['that rejects 20 events in a row', 422, '&batch=1', { code: 'SINK_REFUSED', reason: expect.stringMatching(/^20 /) }],
])('a daemon logs a code when it stops a sink %s', { tags: ['slow'] }, async (_what, status, options, line) => {
  const hook = `webhook+${await receiver(status, status)}/hook#allow=private${options}`;
  const { directory, settings } = await place({ items: 30 }, { CATCHWORD_SINK_HOOK: hook });
  const daemon = startService(['daemon'], settings, directory);
  await daemon.shows('sink is stopped');
  const lines = checkedLines((await daemon.stop()).stderr);
  expect(lines.filter(({ level }) => level === 50).at(-1)).toMatchObject({
    msg: 'sink is stopped; see npx catchword sink list',
    sink: 'hook',
    ...line,
  });
  for (const { code } of lines) expect(code).toEqual(expect.any(String));
});

it('a service logs the error that ends it, even before it has started', async () => {
  const directory = temporaryDirectory();
  const settings = settingsFor('http://127.0.0.1:1', join(directory, 'catalog.db'));
  for (const [verb, wrong] of [
    ['daemon', { CATCHWORD_DELTA_CRON: 'hourly' }],
    ['keeper', {}],
    ['web', { LOG_LEVEL: 'loud' }],
  ] as const) {
    const { code, stdout, stderr } = await runHere([verb], { ...settings, ...wrong }, directory);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(checkedLines(stderr)).toMatchObject([
      { level: 60, role: verb, code: 'CONFIG_INVALID', exitCode: 2, hint: expect.any(String) },
    ]);
  }
});

it('LOG_OUTPUT=split sends errors to stderr and all other lines to stdout', { tags: ['slow'] }, async () => {
  const { directory, settings } = await place({ items: 10 }, { LOG_LEVEL: 'info', LOG_OUTPUT: 'split' });
  const daemon = startService(['daemon'], settings, directory);
  await daemon.shows('run complete');
  const { code, stdout, stderr } = await daemon.stop();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(checkedLines(stdout).map(({ msg }) => msg)).toContain('run complete');
  const loaded = await runHere(['sync', '--json'], settings, directory);
  expect(JSON.parse(loaded.stdout)).toMatchObject({ state: 'complete' });
});

it.each([
  ['with colours', {}],
  ['without colours if NO_COLOR is set', { NO_COLOR: '1' }],
])('a daemon logs readable lines on a terminal, %s', { tags: ['slow'] }, async (_what, more) => {
  const { directory, settings } = await place({ items: 10 }, { LOG_LEVEL: 'info', ...more });
  const { code, stdout, stderr } = await runOnTerminal(['daemon'], settings, directory);
  expect({ code, stderr }, stdout).toMatchObject({ code: 0 });
  expect(stdout).toMatch(/^\S*\[\d\d:\d\d:\d\d\] .*INFO.*: .*run complete/m);
  expect(stdout).not.toMatch(/^\{/m);
  expect(stdout.includes('\u001b[')).toBe(!('NO_COLOR' in more));
});
