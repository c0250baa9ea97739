import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { KEY, type Reply, serve } from '../client/connection.ts';
import { run, start } from '../support/cli.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { csvOf, HEAD, rows, settings, verified, verify } from './credential-service.ts';

describe('credentials verify', () => {
  it('reads CSV and writes CSV', async () => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(
      join(directory, 'users.csv'),
      '\ufeffname,"reference",Access_Token,email\r\nAda,"a ""1"", b",,ada@example.com\r\n\r\n,no-reader,,\r\nBo,,tok1,\r\n',
    );
    const ended = await verified(server, directory, ['users.csv', '--out', 'result.csv']);
    expect(ended).toMatchObject({ code: 0, stdout: '', stderr: '2 verified, 1 not (code 603: 1), 1 request\n' });
    expect(rows(directory, 'result.csv')).toEqual([
      HEAD,
      '"a ""1"", b",G,"t-a ""1"", b",a@b.example,,',
      'no-reader,,,,603,"none, sorry"',
      ',G,tok1,a@b.example,,',
    ]);
    expect(statSync(join(directory, 'result.csv')).mode & 0o777).toBe(0o600);
    expect(server.asked[0]?.body).not.toContain('ada@example.com');
  });

  it('reads NDJSON and writes NDJSON', async () => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.ndjson'), '{"reference":"a"}\n"no-reader"\n{"access_token":"tok"}');
    const ended = await verified(server, directory, ['users.ndjson', '--json']);
    expect(
      ended.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      { ok: true, reference: 'a', guid: 'G', access_token: 't-a', email: 'a@b.example' },
      { ok: false, reference: 'no-reader', guid: null, code: 603, message: 'none, sorry' },
      { ok: true, reference: null, guid: 'G', access_token: 'tok', email: 'a@b.example' },
    ]);
    await verified(server, directory, ['users.ndjson', '--out', 'r.jsonl']);
    expect(rows(directory, 'r.jsonl').join('\n')).toBe(ended.stdout.trimEnd());
  });

  it.each([
    ['CSV', 'guid,reference\n,a\n'],
    ['NDJSON', '{"reference":"a"}\n'],
  ])('reads %s from stdin', async (_name, input) => {
    const server = await serve(({ body }) => verify(body));
    const ended = await run(['credentials', 'verify', '-'], settings(server), temporaryDirectory(), input);
    expect(ended).toMatchObject({ code: 0, stdout: `${HEAD}\na,G,t-a,a@b.example,,\n` });
  });

  it('resumes after the last complete batch', async () => {
    let answers = 2;
    const server = await serve(({ body }): Reply | string => (answers-- > 0 ? verify(body) : { status: 400 }));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(25_000));
    expect(await verified(server, directory, ['users.csv', '--out', 'r.csv'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /\nhint [^\n]*The results of 20,000 accounts are kept\. Repeat the command to resume\.\n$/,
      ) as string,
    });
    expect(rows(directory, 'r.csv.part')).toHaveLength(20_001);
    answers = 100;
    const before = server.asked.length;
    const ended = await verified(server, directory, ['users.csv', '--out', 'r.csv']);
    expect(ended.stderr).toBe('5,000 verified, 0 not, 20,000 known from before, 1 request\n');
    expect(server.asked.length - before).toBe(1);
    const [head, ...results] = rows(directory, 'r.csv');
    expect(head).toBe(HEAD);
    expect(results.map((row) => row.split(',')[0])).toEqual(Array.from({ length: 25_000 }, (_, index) => `r${index}`));
    expect(readdirSync(directory).toSorted()).toEqual(['r.csv', 'r.csv.checkpoint', 'users.csv']);
    const again = await verified(server, directory, ['users.csv', '--out', 'r.csv']);
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('r.csv is complete already') as string });
    expect(server.asked.length - before).toBe(1);
  });

  it.each([
    ['SIGINT', 130, /interrupted after 10,000 accounts\nhint {2}[^\n]*are kept\. Repeat the command to resume\.\n$/],
    ['SIGKILL', null, /^$/],
  ] as const)('resumes after %s', async (signal, code, message) => {
    let isStuck = true;
    const server = await serve(({ body }, index) => (index === 0 || !isStuck ? verify(body) : null));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(10_001));
    const running = start(['credentials', 'verify', 'users.csv', '--out', 'r.csv'], settings(server), directory);
    await expect.poll(() => server.asked.length, { timeout: 30_000 }).toBe(2);
    running.child.kill(signal);
    expect(await running.ended).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) as string });
    isStuck = false;
    expect(await verified(server, directory, ['users.csv', '--out', 'r.csv'])).toMatchObject({ code: 0 });
    expect(rows(directory, 'r.csv')).toHaveLength(10_002);
    expect(server.asked).toHaveLength(3);
  });

  it('prints how to resume after --restart only if results are kept', async () => {
    const server = await serve(({ body }, index): Reply | string => (index === 0 ? verify(body) : { status: 400 }));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(10_001));
    const ended = await verified(server, directory, ['users.csv', '--out', 'r.csv', '--restart']);
    expect(ended.stderr).toContain('10,000 accounts are kept. Repeat the command without --restart to resume.');
    const none = await verified(server, directory, ['users.csv', '--out', 'new.csv']);
    expect(none).toMatchObject({ code: 1, stderr: expect.not.stringContaining('are kept') as string });
    expect(readdirSync(directory).toSorted()).toEqual(['r.csv.checkpoint', 'r.csv.part', 'users.csv']);
  });

  it('replaces results with --restart only', async () => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(2));
    writeFileSync(join(directory, 'r.csv'), `${HEAD}\n`);
    const args = ['users.csv', '--out', 'r.csv'];
    const ended = await verified(server, directory, args);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(/^error r\.csv already exists[^\n]*\nhint {2}[^\n]+--restart\.\n$/);
    expect([rows(directory, 'r.csv'), server.asked.length]).toEqual([[HEAD], 0]);
    expect(await verified(server, directory, [...args, '--restart'])).toMatchObject({ code: 0 });
    expect(rows(directory, 'r.csv')).toHaveLength(3);
  });

  it('does not replace another file, even with --restart', async () => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(2));
    writeFileSync(join(directory, 'notes.txt'), 'my notes');
    for (const more of [[], ['--restart']]) {
      const ended = await verified(server, directory, ['users.csv', '--out', 'notes.txt', ...more]);
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(ended.stderr).toMatch(/^error notes\.txt exists, and does not hold results[^\n]*\nhint {2}Move it away/);
    }
    expect([readFileSync(join(directory, 'notes.txt'), 'utf8'), server.asked.length]).toEqual(['my notes', 0]);
  });

  it('rejects options that exclude each other', async () => {
    const server = await serve(() => '');
    const directory = temporaryDirectory();
    expect((await verified(server, directory, ['users.csv', '--restart'])).stderr).toContain('--restart needs --out');
    const ended = await verified(server, directory, ['users.csv', '--out', 'r.csv', '--json']);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(/--json and --out exclude each other[^\n]*\nhint[^\n]+\.ndjson/);
  });

  it('writes results to regular files only, and leaves the mode of a pipe as it is', async () => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(1));
    execFileSync('mkfifo', ['-m', '644', join(directory, 'pipe')]);
    for (const out of ['pipe', '.']) {
      const ended = await verified(server, directory, ['users.csv', '--out', out]);
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(ended.stderr).toContain(`${out} is not a regular file`);
    }
    expect(statSync(join(directory, 'pipe')).mode & 0o777).toBe(0o644);
    expect(server.asked).toEqual([]);
  });

  it.each([
    ['no column of keys', 'name,email\na,b\n', /line 1: no column is named reference/],
    ['a row without a key', 'reference,email\na,b\n,c\n', /line 3: the account has no key/],
    ['invalid CSV', 'reference\na"b"\n', /line 2 is not valid CSV/],
    ['text that is not UTF-8', Buffer.from('reference\n\xff\n', 'latin1'), /line 2: the text is not UTF-8/],
  ])('rejects a file with %s, and names the line', async (_name, content, message) => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), content);
    const ended = await verified(server, directory, ['users.csv']);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(message);
    expect(ended.stderr).toMatch(/^error [^\n]+\nhint {2}[^\n]+\n$/);
    expect(server.asked).toEqual([]);
  });

  it('prints the error of the service without secrets', async () => {
    const server = await serve(({ body }) => ({ status: 400, body: `"you sent ${KEY} and ${body}"` }));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), 'access-token\ntokenthatmustnotshow\n');
    const ended = await verified(server, directory, ['users.csv']);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain('[SERVICE_INVALID]');
    for (const secret of [KEY, 'tokenthatmustnotshow']) expect(ended.stderr).not.toContain(secret);
  });
});
