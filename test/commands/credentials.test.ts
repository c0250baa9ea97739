import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { KEY, type Reply, serve } from '../client/connection.ts';
import { run, start } from '../support/cli.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { csvOf, HEAD, rows, settings, verified, verify } from './credential-service.ts';

describe('credentials verify', () => {
  it('reads CSV and writes CSV, for this user alone', async () => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(
      join(directory, 'users.csv'),
      '\ufeffname,"reference",Access_Token,email\r\nAda,"a ""1"", b",,ada@example.com\r\n\r\n,nobody,,\r\nBo,,tok1,\r\n',
    );
    const ended = await verified(server, directory, ['users.csv', '--out', 'result.csv']);
    expect(ended).toMatchObject({ code: 0, stdout: '', stderr: '2 verified, 1 not (code 603: 1), 1 request\n' });
    expect(rows(directory, 'result.csv')).toEqual([
      HEAD,
      '"a ""1"", b",G,"t-a ""1"", b",a@b.example,,',
      'nobody,,,,603,"none, sorry"',
      ',G,tok1,a@b.example,,',
    ]);
    expect(statSync(join(directory, 'result.csv')).mode & 0o777).toBe(0o600);
    expect(server.asked[0]?.body).not.toContain('ada@example.com');
  });

  it('reads NDJSON and writes NDJSON', async () => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.ndjson'), '{"reference":"a"}\n"nobody"\n{"access_token":"tok"}');
    const ended = await verified(server, directory, ['users.ndjson', '--json']);
    expect(
      ended.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      { ok: true, reference: 'a', guid: 'G', access_token: 't-a', email: 'a@b.example' },
      { ok: false, reference: 'nobody', guid: null, code: 603, message: 'none, sorry' },
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

  it('goes on after the last whole batch where it was interrupted', async () => {
    let answers = 2;
    const server = await serve(({ body }): Reply | string => (answers-- > 0 ? verify(body) : { status: 400 }));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(25_000));
    expect(await verified(server, directory, ['users.csv', '--out', 'r.csv'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /\nhint [^\n]*What came of 20,000 accounts is kept: started again with --out r\.csv it goes on there\.\n$/,
      ) as string,
    });
    expect(rows(directory, 'r.csv')).toHaveLength(20_001);
    // As a crash leaves it: half a batch, and half a line.
    const torn = `${rows(directory, 'r.csv').slice(0, 15_001).join('\n')}\nr1499`;
    writeFileSync(join(directory, 'r.csv'), torn);
    answers = 100;
    const before = server.asked.length;
    const ended = await verified(server, directory, ['users.csv', '--out', 'r.csv']);
    expect(ended.stderr).toBe('15,000 verified, 0 not, 10,000 known from before, 2 requests\n');
    expect(server.asked.length - before).toBe(2);
    const references = rows(directory, 'r.csv')
      .slice(1)
      .map((row) => row.split(',')[0]);
    expect(references).toEqual(Array.from({ length: 25_000 }, (_, index) => `r${index}`));
    const again = await verified(server, directory, ['users.csv', '--out', 'r.csv']);
    expect(again.stderr).toBe(
      '0 verified, 0 not, 25,000 known from before, 0 requests\n' +
        'r.csv is complete already: nothing was asked; --restart begins anew\n',
    );
    expect(server.asked.length - before).toBe(2);
  });

  it('is interrupted cleanly, says where it stands, and goes on', async () => {
    let isStuck = true;
    const server = await serve(({ body }, index) => (index === 0 || !isStuck ? verify(body) : null));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(10_001));
    const running = start(['credentials', 'verify', 'users.csv', '--out', 'r.csv'], settings(server), directory);
    await expect.poll(() => server.asked.length, { timeout: 30_000 }).toBe(2);
    running.child.kill('SIGINT');
    const ended = await running.ended;
    expect(ended).toMatchObject({ code: 130, stdout: '' });
    expect(ended.stderr).toContain(
      'interrupted after 10,000 accounts; started again with --out r.csv it goes on there',
    );
    isStuck = false;
    expect(await verified(server, directory, ['users.csv', '--out', 'r.csv'])).toMatchObject({ code: 0 });
    expect(rows(directory, 'r.csv')).toHaveLength(10_002);
    expect(server.asked).toHaveLength(3);
  });

  it('says how to go on with what was begun anew', async () => {
    const server = await serve(({ body }, index): Reply | string => (index === 0 ? verify(body) : { status: 400 }));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(10_001));
    const ended = await verified(server, directory, ['users.csv', '--out', 'r.csv', '--restart']);
    expect(ended.stderr).toContain('10,000 accounts is kept: started again with --out r.csv, without --restart, it');
    writeFileSync(join(directory, 'users.csv'), 'reference\nr0\n');
    const none = await verified(server, directory, ['users.csv', '--out', 'new.csv']);
    expect(none).toMatchObject({ code: 1, stderr: expect.not.stringContaining('is kept') as string });
  });

  it.each([
    ['text', 'some,other\n1,2\n'],
    ['text without an end', 'my notes'],
    ['references', 'reference\nr0\n'],
    ['other results', `${HEAD},more\nr0,G,t,,,,\n`],
    ['JSON', '{"okay":1}\n'],
  ])('throws nothing away that is no result, not even when told to: %s', async (_name, there) => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(2));
    writeFileSync(join(directory, 'r.csv'), there, { mode: 0o644 });
    for (const more of [[], ['--restart']]) {
      const ended = await verified(server, directory, ['users.csv', '--out', 'r.csv', ...more]);
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(ended.stderr).toMatch(/^error r\.csv line 1: it is no result[^\n]+\nhint {2}(?!.*--restart)[^\n]+\n$/);
    }
    expect(readFileSync(join(directory, 'r.csv'), 'utf8')).toBe(there);
    expect(statSync(join(directory, 'r.csv')).mode & 0o777).toBe(0o644);
    expect(server.asked).toEqual([]);
  });

  it.each([
    ['its first line cut short', HEAD.slice(0, 9)],
    ['nothing in it', ''],
    ['its line breaks changed', `\ufeff${HEAD}\r\nr7,G,t,,,\r\n`],
    ['the other format', '{"ok":true,"reference":"r7","guid":"G","access_token":"t","email":null}\n'],
    ['the other format, cut short', '{"o'],
  ])('begins a file of its own anew that has %s', async (_name, there) => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(2));
    writeFileSync(join(directory, 'r.csv'), there);
    const ended = await verified(server, directory, ['users.csv', '--out', 'r.csv', '--restart']);
    expect(ended).toMatchObject({ code: 0 });
    expect(rows(directory, 'r.csv')).toEqual([HEAD, 'r0,G,t-r0,a@b.example,,', 'r1,G,t-r1,a@b.example,,']);
  });

  it.each([
    ['other accounts', `${HEAD}\nx,G,t,,,\n`, /line 2: it is about another account/],
    ['more accounts', `${HEAD}\nr0,G,t,,,\nr1,G,t,,,\nr2,G,t,,,\n`, /line 4: it goes on where the input ends/],
    ['the other format', '{"ok":true,"reference":"r0","guid":"G"}\n', /line 1: it is no result[^\n]+\n.*--restart/],
    ['the other format, cut short', '{"ok":tr', /line 1: it is no result[^\n]+\n.*--restart/],
  ])('does not overwrite results of %s', async (_name, there, message) => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(2));
    writeFileSync(join(directory, 'r.csv'), there);
    const ended = await verified(server, directory, ['users.csv', '--out', 'r.csv']);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(message);
    expect(readFileSync(join(directory, 'r.csv'), 'utf8')).toBe(there);
    expect(server.asked).toEqual([]);
  });

  it('throws nothing away for what the service refuses', async () => {
    let isRefused = false;
    const server = await serve(({ body }): Reply | string => (isRefused ? { status: 422 } : verify(body)));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(9));
    const args = ['users.csv', '--out', 'r.csv'];
    await verified(server, directory, args);
    const before = rows(directory, 'r.csv');
    writeFileSync(join(directory, 'users.csv'), csvOf(10));
    isRefused = true;
    for (const more of [[], ['--restart']]) {
      expect(await verified(server, directory, [...args, ...more])).toMatchObject({ code: 1, stdout: '' });
      expect(rows(directory, 'r.csv')).toEqual(before);
    }
    await verified(server, directory, ['users.csv', '--out', 'new.csv']);
    expect(existsSync(join(directory, 'new.csv'))).toBe(false);
    isRefused = false;
    expect(await verified(server, directory, args)).toMatchObject({ code: 0 });
    expect(rows(directory, 'r.csv')).toEqual([...before, 'r9,G,t-r9,a@b.example,,']);
  });

  it('begins anew when told to', async () => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(2));
    const args = ['users.csv', '--out', 'r.csv'];
    for (const more of [[], [], ['--restart']]) await verified(server, directory, [...args, ...more]);
    expect(server.asked).toHaveLength(2);
    expect(rows(directory, 'r.csv')).toHaveLength(3);
    expect((await verified(server, directory, ['users.csv', '--restart'])).stderr).toContain('--restart is about');
    const ended = await verified(server, directory, [...args, '--json']);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(/--json is about[^\n]+\nhint[^\n]+\.ndjson/);
    expect(server.asked).toHaveLength(2);
  });

  it('writes to regular files alone: the mode of a device or a pipe is not its to change', async () => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(1));
    // Its own, so that nobody's device changes where this fails.
    execFileSync('mkfifo', ['-m', '644', join(directory, 'pipe')]);
    for (const out of ['pipe', '.']) {
      const ended = await verified(server, directory, ['users.csv', '--out', out]);
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(ended.stderr).toContain(`${out} is no regular file`);
    }
    expect(statSync(join(directory, 'pipe')).mode & 0o777).toBe(0o644);
    expect(server.asked).toEqual([]);
  });

  it.each([
    ['no column that counts', 'name,email\na,b\n', /names no column that can be verified/],
    ['a row that names nobody', 'reference,email\na,b\n,c\n', /line 3: it names no account/],
    ['a quote in a field', 'reference\na"b"\n', /line 2: it is no CSV/],
    ['a quote that does not end', `reference\n"${'x'.repeat(2_000_000)}`, /line 2: it is longer than/],
    ['what is not UTF-8', Buffer.from('reference\n\xff\n', 'latin1'), /line 2: it is not UTF-8/],
  ])('refuses a file with %s, and names the line', async (_name, content, message) => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), content);
    const ended = await verified(server, directory, ['users.csv']);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(message);
    expect(ended.stderr).toMatch(/^error [^\n]+\nhint {2}[^\n]+\n$/);
    expect(server.asked).toEqual([]);
  });

  it('ends with the error of the service, which holds no secret', async () => {
    const server = await serve(({ body }) => ({ status: 400, body: `"you sent ${KEY} and ${body}"` }));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), 'access-token\ntokenthatmustnotshow\n');
    const ended = await verified(server, directory, ['users.csv']);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain('[SERVICE_INVALID]');
    for (const secret of [KEY, 'tokenthatmustnotshow']) expect(ended.stderr).not.toContain(secret);
  });
});
