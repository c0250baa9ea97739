import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import type { CredentialSubmission } from 'catchword-client/credentials/submission';
import { expect, it } from 'vitest';
import { openResultFile } from '../../src/cli/commands/credentials/result-file.ts';
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
    await write();
    await output.finish();
    return output.done;
  } finally {
    await output.close();
  }
}

const MANY = Array.from({ length: 25 }, (_, index) => ({ reference: `r${index}` }));
const ALL = MANY.map(rowOf).join('');

it('a result file is resumed after the last whole batch, and readable by its user alone', async () => {
  const path = join(temporaryDirectory(), 'out.csv');
  expect(await runOf(path, MANY, { until: 20 })).toBe(0);
  expect(readFileSync(`${path}.part`, 'utf8')).toMatch(
    /^catchword credentials verify [0-9a-f]{64} +20 +\d+ +0\n\{"ok":true/,
  );
  expect(readFileSync(`${path}.part`, 'utf8')).not.toContain('SECRETKEY');
  chmodSync(`${path}.part`, 0o644);
  expect(await runOf(path, MANY)).toBe(20);
  expect(readFileSync(path, 'utf8')).toBe(ALL);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(path, '..'))).toEqual(['out.csv']);
});

it('a result file is resumed at every point where a crash may cut it', async () => {
  const path = join(temporaryDirectory(), 'out.csv');
  const cut = async (until: number): Promise<Buffer> => {
    await runOf(path, MANY, { until });
    return readFileSync(`${path}.part`);
  };
  const [first, second] = [await cut(10), await cut(20)];
  await runOf(path, []).catch(() => {});
  const line = second.indexOf('\n') + 1;
  const started = Buffer.from(
    first.toString('utf8', 0, line).replace(/ +10 +\d+/, ` ${'0'.padStart(16)}${String(line).padStart(17)}`),
  );
  expect(started).toHaveLength(line);
  for (const [content, done] of [
    [Buffer.alloc(0), 0],
    [started, 0],
    [Buffer.concat([started, first.subarray(line, -3)]), 0],
    [first, 10],
    [Buffer.concat([first, second.subarray(first.length, -3)]), 10],
    [second, 20],
  ] as const) {
    writeFileSync(`${path}.part`, content);
    // A crash at the end may cut off the file that becomes the results.
    writeFileSync(`${path}.part.new`, 'cut');
    expect(await runOf(path, MANY)).toBe(done);
    expect(readFileSync(path, 'utf8')).toBe(ALL);
    expect(readdirSync(join(path, '..'))).toEqual(['out.csv']);
    writeFileSync(path, '');
  }
});

it('a result file is completed by a run that has nothing left to verify', async () => {
  const path = join(temporaryDirectory(), 'out.csv');
  await runOf(path, MANY, { until: 20 });
  expect(await runOf(path, MANY.slice(0, 20))).toBe(20);
  expect(readFileSync(path, 'utf8')).toBe(MANY.slice(0, 20).map(rowOf).join(''));
});

it('a result file is resumed although a batch ended before the account that was read last', async () => {
  const path = join(temporaryDirectory(), 'out.csv');
  const output = await openResultFile(path, false, SCOPE, listed(MANY), null);
  const accounts = output.rest[Symbol.asyncIterator]();
  for (let read = 0; read < 11; read++) await accounts.next();
  await output.write(MANY.slice(0, 10).map(rowOf).join(''), 10, 0);
  await output.close();
  expect(await runOf(path, MANY)).toBe(10);
  expect(readFileSync(path, 'utf8')).toBe(ALL);
});

it('a result file keeps interrupted results until a restart has others', async () => {
  const path = join(temporaryDirectory(), 'out.csv');
  await runOf(path, MANY, { until: 20 });
  const before = readFileSync(`${path}.part`, 'utf8');
  await runOf(path, MANY, { restart: true, until: 0 });
  await expect(runOf(path, [], { restart: true })).rejects.toThrow(/the input is empty/);
  expect(readFileSync(`${path}.part`, 'utf8')).toBe(before);
  expect(await runOf(path, MANY, { until: 20 })).toBe(20);
  await runOf(path, MANY.toReversed(), { restart: true, until: 10 });
  expect(await runOf(path, MANY.toReversed())).toBe(10);
  expect(readFileSync(path, 'utf8')).toBe(MANY.toReversed().map(rowOf).join(''));
});

it('a result file is resumed with accounts appended to the input', async () => {
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
])('a result file is not resumed with %s', async (_name, submissions, scope) => {
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
  ['a .part of an older version', '.part', 'reference,guid,access_token,email,code,message\n'],
  ['a .part that lost its end', '.part', `catchword credentials verify ${'0'.repeat(64)} 10 999 0\n`],
])('a result file leaves %s unchanged, even with --restart', async (_name, suffix, content) => {
  const path = join(temporaryDirectory(), 'out.csv');
  writeFileSync(`${path}${suffix}`, content);
  for (const restart of [false, true]) {
    await expectUsage(runOf(path, MANY, { restart }), `${path}${suffix} `, /^Move it away/);
  }
  expect(readdirSync(join(path, '..'))).toEqual([`out.csv${suffix}`]);
  expect(readFileSync(`${path}${suffix}`, 'utf8')).toBe(content);
});

it('a result file replaces other results with --restart only, and not before they are complete', async () => {
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

it('a result file leaves no file without results, and one for an input without accounts', async () => {
  const path = join(temporaryDirectory(), 'out.csv');
  await runOf(path, MANY, { until: 0 });
  expect(readdirSync(join(path, '..'))).toEqual([]);
  await runOf(path, []);
  expect(readdirSync(join(path, '..'))).toEqual(['out.csv']);
});

it('a result file names the file that cannot be written', async () => {
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
