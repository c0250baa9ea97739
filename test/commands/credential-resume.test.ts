import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CredentialSubmission } from '../../src/client/credentials/submission.ts';
import { openResultFile } from '../../src/commands/credentials/result-file.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { expectUsage } from './credential-service.ts';

const SCOPE = ['https://books.example/', 'SECRETKEY', 'csv'];

function rowOf({ reference = '' }: CredentialSubmission): string {
  return `{"ok":true,"reference":"${reference}"}\n`;
}

/** Accounts with one-letter tokens. */
function withTokens(tokens: string): CredentialSubmission[] {
  return tokens.split('').map((accessToken) => ({ accessToken }));
}

async function* listed(submissions: readonly CredentialSubmission[]) {
  yield* submissions;
}

/** Runs to the end, or breaks off before `until` accounts. @returns how many accounts were done before */
async function runOf(
  path: string,
  submissions: readonly CredentialSubmission[],
  { until = 1e9, restart = false, scope = SCOPE } = {},
): Promise<number> {
  const output = await openResultFile(path, restart, scope, listed(submissions), null);
  try {
    let batch: CredentialSubmission[] = [];
    let accounts = output.done;
    const write = async (): Promise<void> => {
      await output.write(batch.map(rowOf).join(''), batch.length, 0);
      accounts += batch.length;
      batch = [];
    };
    for await (const submission of output.rest) {
      if (accounts >= until) return output.done;
      batch.push(submission);
      if (batch.length === 10) await write();
    }
    if (batch.length > 0) await write();
    await output.finish();
    return output.done;
  } finally {
    await output.close();
  }
}

const MANY = Array.from({ length: 25 }, (_, index) => ({ reference: `r${index}` }));
const ALL = MANY.map(rowOf).join('');

describe('a result file', () => {
  it('is resumed after the last complete batch, and readable by its user alone', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    expect(await runOf(path, MANY, { until: 20 })).toBe(0);
    expect(readFileSync(`${path}.checkpoint`, 'utf8')).toMatch(/^20 \d+ [0-9a-f]{64} 0\n$/);
    expect(statSync(`${path}.checkpoint`).mode & 0o777).toBe(0o600);
    chmodSync(`${path}.part`, 0o644);
    expect(await runOf(path, MANY)).toBe(20);
    expect(readFileSync(path, 'utf8')).toBe(ALL);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(path, '..'))).toEqual(['out.csv', 'out.csv.checkpoint']);
  });

  it('is resumed at every point where a crash may cut it', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    const checkpoints: string[] = [];
    for (const until of [10, 20]) {
      await runOf(path, MANY, { until });
      checkpoints.push(readFileSync(`${path}.checkpoint`, 'utf8'));
    }
    const part = readFileSync(`${path}.part`);
    const [first = '', second = ''] = checkpoints;
    const none = `0 0 ${'0'.repeat(64)}\n`;
    for (const [checkpoint, length, done] of [
      [none, 0, 0],
      [none, 5, 0],
      [first, Number(first.split(' ')[1]), 10],
      [first, part.length - 1, 10],
      [second, part.length, 20],
    ] as const) {
      writeFileSync(`${path}.part`, part.subarray(0, length));
      writeFileSync(`${path}.checkpoint`, checkpoint);
      // A crash may cut off the next checkpoint.
      writeFileSync(`${path}.checkpoint.new`, '0 0 ab');
      expect(await runOf(path, MANY)).toBe(done);
      expect(readFileSync(path, 'utf8')).toBe(ALL);
      writeFileSync(path, '');
    }
  });

  it('is not verified again once it is complete', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    await runOf(path, MANY);
    expect(await runOf(path, MANY)).toBe(25);
    expect(readFileSync(path, 'utf8')).toBe(ALL);
    for (const [submissions, scope] of [
      [MANY.slice(1), SCOPE],
      [MANY.slice(0, -1), SCOPE],
      [[...MANY, { reference: 'more' }], SCOPE],
      [MANY, SCOPE.with(1, 'OTHER')],
    ] as const) {
      await expect(runOf(path, submissions, { scope: [...scope] })).rejects.toThrow(`${path} already exists`);
    }
    writeFileSync(path, ALL.slice(0, -1));
    await expect(runOf(path, MANY)).rejects.toThrow(`${path} already exists`);
    expect(await runOf(path, MANY, { restart: true })).toBe(0);
    expect(await runOf(path, MANY)).toBe(25);
    rmSync(path);
    expect(await runOf(path, MANY.slice(1))).toBe(0);
  });

  it('keeps interrupted results until a restart has others', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    await runOf(path, MANY, { until: 20 });
    const files = (): string[] => [`${path}.part`, `${path}.checkpoint`].map((name) => readFileSync(name, 'utf8'));
    const before = files();
    await runOf(path, MANY, { restart: true, until: 0 });
    await expect(runOf(path, [], { restart: true })).rejects.toThrow(/the input is empty/);
    expect(files()).toEqual(before);
    expect(await runOf(path, MANY, { until: 20 })).toBe(20);
    await runOf(path, MANY.toReversed(), { restart: true, until: 10 });
    expect(await runOf(path, MANY.toReversed())).toBe(10);
    expect(readFileSync(path, 'utf8')).toBe(MANY.toReversed().map(rowOf).join(''));
  });

  it('is resumed with accounts appended to the input', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    await runOf(path, MANY.slice(0, 20), { until: 10 });
    expect(await runOf(path, MANY)).toBe(10);
    expect(readFileSync(path, 'utf8')).toBe(ALL);
  });

  it.each<[string, readonly CredentialSubmission[], string[]]>([
    ['other tokens', withTokens('abXdefghijklm'), SCOPE],
    ['another order', withTokens('bacdefghijklm'), SCOPE],
    ['fewer accounts', withTokens('abcdef'), SCOPE],
    ['references instead of tokens', 'abcdefghijklm'.split('').map((reference) => ({ reference })), SCOPE],
    ['another service', withTokens('abcdefghijklm'), SCOPE.with(0, 'https://other.example/')],
    ['another API key', withTokens('abcdefghijklm'), SCOPE.with(1, 'OTHER')],
    ['another format', withTokens('abcdefghijklm'), SCOPE.with(2, 'ndjson')],
  ])('is not resumed with %s', async (_name, submissions, scope) => {
    const path = join(temporaryDirectory(), 'out.csv');
    await runOf(path, withTokens('abcdefghijklm'), { until: 10 });
    const before = readFileSync(`${path}.part`, 'utf8');
    await expectUsage(runOf(path, submissions, { scope }), 'another input, service or API key', /--restart/);
    await expect(runOf(path, [], { scope })).rejects.toThrow(/another input/);
    expect(readFileSync(`${path}.part`, 'utf8')).toBe(before);
    expect(await runOf(path, submissions, { scope, restart: true })).toBe(0);
    expect(readFileSync(path, 'utf8')).toBe(submissions.map(rowOf).join(''));
  });

  it.each([
    ['results of another program', '', 'reference,guid\n'],
    ['a .part of another program', '.part', 'precious'],
    ['a .checkpoint of another program', '.checkpoint', 'precious\n'],
    ['a short .checkpoint of another program', '.checkpoint', 'precious'],
  ])('leaves %s unchanged, even with --restart', async (_name, suffix, content) => {
    const path = join(temporaryDirectory(), 'out.csv');
    writeFileSync(`${path}${suffix}`, content);
    for (const restart of [false, true]) {
      await expectUsage(runOf(path, MANY, { restart }), `${path}${suffix} `, /^Move it away/);
    }
    expect(readdirSync(join(path, '..'))).toEqual([`out.csv${suffix}`]);
    expect(readFileSync(`${path}${suffix}`, 'utf8')).toBe(content);
  });

  it.each([
    ['no .checkpoint', null, /^Move it away/],
    ['a .checkpoint of more bytes', `3 999 ${'0'.repeat(64)}\n`, /^Start over with --restart/],
  ])('is not resumed from results with %s', async (_name, checkpoints, hint) => {
    const path = join(temporaryDirectory(), 'out.csv');
    writeFileSync(`${path}.part`, ALL.slice(0, 99));
    if (checkpoints !== null) writeFileSync(`${path}.checkpoint`, checkpoints);
    await expectUsage(runOf(path, MANY), `${path}.part does not match ${path}.checkpoint`, hint);
    expect(readFileSync(`${path}.part`, 'utf8')).toBe(ALL.slice(0, 99));
    expect(await runOf(path, MANY, { restart: true })).toBe(0);
    expect(readFileSync(path, 'utf8')).toBe(ALL);
  });

  it('replaces other results with --restart only, and not before they are complete', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    writeFileSync(path, rowOf({ reference: 'old' }));
    await expectUsage(runOf(path, MANY), `${path} already exists`, /--restart/);
    await runOf(path, MANY, { restart: true, until: 10 });
    expect(readFileSync(path, 'utf8')).toBe(rowOf({ reference: 'old' }));
    await expect(runOf(path, [], { restart: true })).rejects.toThrow(/the input is empty/);
    expect(readFileSync(path, 'utf8')).toBe(rowOf({ reference: 'old' }));
    expect(await runOf(path, MANY)).toBe(10);
    expect(readFileSync(path, 'utf8')).toBe(ALL);
  });

  it('leaves no file without results, and one for an input without accounts', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    await runOf(path, MANY, { until: 0 });
    expect(readdirSync(join(path, '..'))).toEqual([]);
    await runOf(path, []);
    expect(readdirSync(join(path, '..'))).toEqual(['out.csv', 'out.csv.checkpoint']);
  });

  it('names the file that cannot be written', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    writeFileSync(path, '');
    await expect(runOf(join(path, 'x.csv'), MANY)).rejects.toMatchObject({ exitCode: 2 });
    await expect(runOf('', MANY)).rejects.toMatchObject({ message: '--out is empty' });
    execFileSync('mkfifo', ['-m', '644', `${path}.pipe`]);
    for (const other of [join(path, '..'), `${path}.pipe`]) {
      await expect(runOf(other, MANY)).rejects.toThrow(/is not a regular file/);
    }
    expect(statSync(`${path}.pipe`).mode & 0o777).toBe(0o644);
  });
});
