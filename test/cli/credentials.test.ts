import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { KEY, type Reply } from '../../packages/client/test/connection.ts';
import { run, start } from '../support/cli.ts';
import { csvOf, HEAD, place, rows, verify } from './credential-service.ts';
import { expectFailure } from './failure.ts';

const OUT = ['users.csv', '--out', 'r.csv'];

it('credentials verify reads CSV and writes CSV', async () => {
  const { server, directory, verified, path } = await place(
    '\ufeffname,"reference",Access_Token,email\r\nAda,"a ""1"", b",,ada@example.com\r\n\r\n,no-reader,,\r\nBo,,tok1,\r\n',
  );
  const ended = await verified(...OUT);
  expect(ended).toMatchObject({ code: 3, stdout: '', stderr: '2 verified, 1 not (code 603: 1), 1 request\n' });
  expect(rows(directory, 'r.csv')).toEqual([
    HEAD,
    '"a ""1"", b",G,"t-a ""1"", b",a@b.example,,',
    'no-reader,,,,603,"none, sorry"',
    ',G,tok1,a@b.example,,',
  ]);
  expect(statSync(path('r.csv')).mode & 0o777).toBe(0o600);
  expect(server.asked[0]?.body).not.toContain('ada@example.com');
});

it('credentials verify exits with 3 if an account is not verified, also by the run that was interrupted', {
  tags: ['slow'],
}, async () => {
  let isStuck = true;
  const users = csvOf(10_001).replace('r0\n', 'no-reader\n');
  const reply = ({ body }: { body: string }, index: number) =>
    index === 0 || !isStuck ? verify(body) : { status: 400 };
  const { verified } = await place(users, reply);
  expect(await verified(...OUT)).toMatchObject({ code: 1 });
  isStuck = false;
  const ended = await verified(...OUT);
  expect(ended).toMatchObject({ code: 3, stdout: '' });
  expect(ended.stderr).toBe('1 verified, 0 not, 10,000 known from before (1 of them not verified), 1 request\n');
});

it('credentials verify sends a reference of more than 255 characters with --force only', async () => {
  const { server, verified } = await place(`reference\n${'r'.repeat(256)}\n`);
  expectFailure(await verified('users.csv'), 2, '--force');
  expect(server.asked).toEqual([]);
  expect(await verified('users.csv', '--force')).toMatchObject({ code: 0 });
});

it('credentials verify reads NDJSON and writes NDJSON', async () => {
  const { directory, verified, path } = await place();
  writeFileSync(path('users.ndjson'), '{"reference":"a"}\n"no-reader"\n{"access_token":"tok"}');
  const { stdout } = await verified('users.ndjson', '--json');
  const lines = stdout.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    { ok: true, reference: 'a', guid: 'G', access_token: 't-a', email: 'a@b.example' },
    { ok: false, reference: 'no-reader', guid: null, code: 603, message: 'none, sorry' },
    { ok: true, reference: null, guid: 'G', access_token: 'tok', email: 'a@b.example' },
  ]);
  await verified('users.ndjson', '--out', 'r.jsonl');
  expect(rows(directory, 'r.jsonl')).toEqual(lines);
});

it.each([
  ['CSV', 'guid,reference\n,a\n'],
  ['NDJSON', '{"reference":"a"}\n'],
])('credentials verify reads %s from stdin', async (_name, input) => {
  const { env, directory } = await place();
  const ended = await run(['credentials', 'verify', '-'], env, directory, input);
  expect(ended).toMatchObject({ code: 0, stdout: `${HEAD}\na,G,t-a,a@b.example,,\n` });
});

it('credentials verify resumes after the last complete batch', { tags: ['slow'] }, async () => {
  let answers = 2;
  const reply = ({ body }: { body: string }): Reply | string => (answers-- > 0 ? verify(body) : { status: 400 });
  const { server, directory, verified } = await place(csvOf(25_000), reply);
  const broken = await verified(...OUT);
  expect(broken.code).toBe(1);
  expect(broken.stderr).toMatch(
    /\nhint [^\n]*The results of 20,000 accounts are kept\. Repeat the command to resume\.\n$/,
  );
  expect(rows(directory, 'r.csv.part')).toHaveLength(20_002);
  answers = 100;
  const before = server.asked.length;
  const ended = await verified(...OUT);
  expect(ended.stderr).toBe('5,000 verified, 0 not, 20,000 known from before, 1 request\n');
  expect(server.asked.length - before).toBe(1);
  const [head, ...results] = rows(directory, 'r.csv');
  expect(head).toBe(HEAD);
  expect(results.map((row) => row.split(',')[0])).toEqual(Array.from({ length: 25_000 }, (_, index) => `r${index}`));
  expect(readdirSync(directory).toSorted()).toEqual(['r.csv', 'users.csv']);
  const again = await verified(...OUT);
  expectFailure(again, 2, /^error r\.csv already exists[^\n]*\nhint {2}It is complete[^\n]+--restart\.\n$/);
  expect(server.asked.length - before).toBe(1);
  expect(await verified(...OUT, '--restart')).toMatchObject({ code: 0 });
  expect(rows(directory, 'r.csv')).toHaveLength(25_001);
});

it.each([
  ['SIGINT', 130, /interrupted after 10,000 accounts\nhint {2}[^\n]*are kept\. Repeat the command to resume\.\n$/],
  ['SIGKILL', null, /^$/],
] as const)('credentials verify resumes after %s', { tags: ['slow'] }, async (signal, code, message) => {
  let isStuck = true;
  const { server, directory, env, verified } = await place(csvOf(10_001), ({ body }, index) =>
    index === 0 || !isStuck ? verify(body) : null,
  );
  const running = start(['credentials', 'verify', ...OUT], env, directory);
  await expect.poll(() => server.asked.length, { timeout: 30_000 }).toBe(2);
  running.child.kill(signal);
  expect(await running.ended).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) as string });
  isStuck = false;
  expect(await verified(...OUT)).toMatchObject({ code: 0 });
  expect(rows(directory, 'r.csv')).toHaveLength(10_002);
  expect(server.asked).toHaveLength(3);
});

it('credentials verify prints how to resume after --restart only if results are kept', async () => {
  const { directory, verified } = await place(csvOf(10_001), ({ body }, index) =>
    index === 0 ? verify(body) : { status: 400 },
  );
  const ended = await verified(...OUT, '--restart');
  expect(ended.stderr).toContain('10,000 accounts are kept. Repeat the command without --restart to resume.');
  const none = await verified('users.csv', '--out', 'new.csv');
  expect(none).toMatchObject({ code: 1, stderr: expect.not.stringContaining('are kept') as string });
  expect(readdirSync(directory).toSorted()).toEqual(['r.csv.part', 'users.csv']);
});

it('credentials verify rejects options that exclude each other', async () => {
  const { verified } = await place();
  expect((await verified('users.csv', '--restart')).stderr).toContain('--restart needs --out');
  const both = await verified(...OUT, '--json');
  const [message, hint] = ['--json and --out exclude each other', expect.stringContaining('.ndjson')];
  expect([both.code, JSON.parse(both.stderr)]).toEqual([2, { error: { code: 'USAGE', message, hint } }]);
});

it('credentials verify prints the error of the service without secrets', async () => {
  const { verified } = await place('access-token\ntokenthatmustnotshow\n', ({ body }) => {
    return { status: 400, body: `"you sent ${KEY} and ${body}"` };
  });
  const ended = await verified('users.csv');
  expectFailure(ended, 1, '[SERVICE_INVALID]');
  for (const secret of [KEY, 'tokenthatmustnotshow']) expect(ended.stderr).not.toContain(secret);
});
