import {
  appendFileSync,
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CredentialSubmission } from '../../src/client/credentials/submission.ts';
import type { Submitted } from '../../src/commands/credentials/input.ts';
import type { ResultFormat } from '../../src/commands/credentials/output.ts';
import { toFile } from '../../src/commands/credentials/output-file.ts';
import { temporaryDirectory } from '../support/mirror.ts';

const HEAD = 'reference,guid,access_token,email,code,message\n';

const SERVICE = { baseUrl: 'https://books.example', apiKey: 'KEY' };

async function opened(
  path: string,
  submissions: AsyncIterableIterator<Submitted>,
  { format = 'csv' as ResultFormat, restart = false, service = SERVICE } = {},
) {
  return await toFile({ path, format, restart, ...service }, { submissions, identity: null });
}

describe('results of an earlier run', () => {
  it.each(['csv', 'ndjson'] as const)('may end inside a character (%s)', async (format) => {
    const path = join(temporaryDirectory(), 'out');
    const line = format === 'csv' ? 'Zoë,G,t,,,' : '{"ok":true,"reference":"Zoë","guid":"G","access_token":"t"}';
    const bytes = Buffer.from(line);
    const torn = bytes.subarray(0, bytes.indexOf(Buffer.from('ë')) + 1);
    const head = format === 'csv' ? HEAD : '';
    writeFileSync(path, Buffer.concat([Buffer.from(head), torn]));
    const output = await opened(path, inputOf([{ reference: 'Zoë' }]), { format });
    await output.finish();
    await output.close();
    expect(output.done).toBe(0);
    expect(readFileSync(path, 'utf8')).toBe(head);
  });
});

function withTokens(...tokens: string[]) {
  return tokens.map((accessToken) => ({ accessToken }));
}

async function* inputOf(submissions: readonly CredentialSubmission[]) {
  for (const submission of submissions) yield { submission, end: 0 };
}

/** A run that ends, or is broken off before `until` accounts. @returns how many were known before */
async function runOf(
  path: string,
  submissions: readonly CredentialSubmission[],
  { until = 1e9, restart = false, service = SERVICE } = {},
) {
  const input = inputOf(submissions);
  const output = await opened(path, input, { restart, service });
  const rest: CredentialSubmission[] = output.open.map(({ submission }) => submission);
  for await (const { submission } of input) rest.push(submission);
  for (let at = 0; at < rest.length && output.done + at < until; at += 10_000) {
    const batch = rest.slice(at, at + 10_000);
    for (const submission of batch) output.submitted(submission);
    const about = { ok: true, reference: null, guid: null, email: null, others: {} } as const;
    await output.write(batch.map(() => ({ ...about, accessToken: 'new' })));
  }
  await output.close();
  return output.done;
}

describe('results of accounts that only tokens name', () => {
  const many = withTokens(...Array.from({ length: 25_000 }, (_, index) => `t${index}`));

  it('are gone on with for the same input, and for no other', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    expect(await runOf(path, many, { until: 20_000 })).toBe(0);
    const before = readFileSync(path, 'utf8');
    const changed = many.with(3, { accessToken: 'other' });
    for (const other of [changed, many.toReversed()]) {
      await expect(runOf(path, other)).rejects.toMatchObject({
        ...{ code: 'USAGE', message: expect.stringContaining('another input') as string },
        hint: expect.stringContaining('--restart') as string,
      });
    }
    expect(readFileSync(path, 'utf8')).toBe(before);
    expect(await runOf(path, many)).toBe(20_000);
    expect(await runOf(path, many)).toBe(25_000);
    expect(await runOf(path, [...many, ...withTokens('more')])).toBe(20_000);
    expect(await runOf(path, withTokens('other'), { restart: true })).toBe(0);
    expect(readFileSync(path, 'utf8')).toBe(`${HEAD},,new,,,\n`);
    expect(readFileSync(`${path}.state`, 'utf8').match(/^\d+/gm)).toEqual(['1']);
    expect(statSync(`${path}.state`).mode & 0o777).toBe(0o600);
  });

  it.each([3, 10_003])('are not overwritten by those of a longer input that is another one: %i', async (accounts) => {
    const path = join(temporaryDirectory(), 'out.csv');
    await runOf(path, many.slice(0, accounts));
    const before = readFileSync(path, 'utf8');
    const other = [...many.slice(0, accounts - 3), ...withTokens('v', 'w', 'x', 'y', 'z')];
    await expect(runOf(path, other)).rejects.toMatchObject({
      ...{ code: 'USAGE', message: expect.stringContaining('another input') as string },
      hint: expect.stringContaining('--restart') as string,
    });
    expect(readFileSync(path, 'utf8')).toBe(before);
    const whole = accounts - (accounts % 10_000);
    expect(await runOf(path, many.slice(0, accounts + 1))).toBe(whole);
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(accounts + 3);
  });

  it('stay as they are until there are others to write', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    const few = withTokens('a', 'b');
    expect(await runOf(path, few, { until: 0 })).toBe(0);
    expect([existsSync(path), existsSync(`${path}.state`)]).toEqual([false, false]);
    await runOf(path, few);
    const noted = (): string[] => [readFileSync(path, 'utf8'), readFileSync(`${path}.state`, 'utf8')];
    const before = noted();
    for (const restart of [false, true]) {
      expect(await runOf(path, [...few, ...withTokens('c')], { until: 0, restart })).toBe(0);
      expect(noted()).toEqual(before);
    }
  });

  it('are gone on with where a crash came between what is noted and what is written', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    await runOf(path, many);
    const lines = readFileSync(path, 'utf8').split('\n');
    writeFileSync(path, lines.slice(0, 10_004).join('\n').concat('\n,'));
    appendFileSync(`${path}.state`, '25000 ab');
    expect(await runOf(path, many)).toBe(10_000);
    expect(await runOf(path, many)).toBe(25_000);
    expect(readFileSync(`${path}.state`, 'utf8').match(/^\d+/gm)).toEqual(['10000', '20000', '25000']);
  });

  it('are of one service and one key, neither of which can be read from what is noted', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    const few = withTokens('a', 'b');
    await runOf(path, few);
    const before = readFileSync(path, 'utf8');
    for (const more of [{ baseUrl: 'https://other.example' }, { apiKey: 'OTHER' }]) {
      const service = { ...SERVICE, ...more };
      // Another input too: what is thrown away and asked again is results as well.
      for (const accounts of [few, [...few, ...withTokens('c')]]) {
        await expect(runOf(path, accounts, { service })).rejects.toMatchObject({
          ...{ code: 'USAGE', message: expect.stringContaining('another service or another API key') as string },
          hint: expect.stringContaining('--restart') as string,
        });
      }
    }
    expect(readFileSync(path, 'utf8')).toBe(before);
    expect(await runOf(path, few, { service: { ...SERVICE, baseUrl: 'https://BOOKS.example:443/' } })).toBe(2);
    expect(readFileSync(`${path}.state`, 'utf8')).toMatch(/^2 [0-9a-f]{64} [0-9a-f]{64}\n$/);
    expect(await runOf(path, few, { service: { ...SERVICE, apiKey: 'OTHER' }, restart: true })).toBe(0);
  });

  it.each(['precious\n', 'precious', '25000 ab\n'])('are not begun over a file of that name: %j', async (there) => {
    const path = join(temporaryDirectory(), 'out.csv');
    writeFileSync(`${path}.state`, there);
    chmodSync(`${path}.state`, 0o640);
    for (const restart of [false, true]) {
      await expect(runOf(path, withTokens('a'), { restart })).rejects.toMatchObject({
        ...{ code: 'USAGE', message: expect.stringContaining('out.csv.state is in the way') as string },
      });
    }
    expect(existsSync(path)).toBe(false);
    expect(readFileSync(`${path}.state`, 'utf8')).toBe(there);
    expect(statSync(`${path}.state`).mode & 0o777).toBe(0o640);
  });

  it.each<[string, string, (path: string) => void]>([
    ['a lock that is none', 'out.csv.lock', (path) => writeFileSync(path, 'my notes\n'.repeat(100))],
    ['a link to nothing', 'out.csv', (path) => symlinkSync('nothing.csv', path)],
  ])('have no file where they are refused for %s', async (_name, there, prepare) => {
    const directory = temporaryDirectory();
    prepare(join(directory, there));
    const refused = runOf(join(directory, 'out.csv'), withTokens('a'));
    await expect(refused).rejects.toMatchObject({ exitCode: 2, hint: expect.any(String) as string });
    expect(readdirSync(directory)).toEqual([there]);
  });

  // Nobody else can give a file away.
  it.skipIf(process.geteuid?.() !== 0)(
    'are refused over a file of another user, before anything is asked',
    async () => {
      const directory = temporaryDirectory();
      chmodSync(directory, 0o777);
      const path = join(directory, 'out.csv');
      for (const there of ['', `${HEAD},,old,,,\n`]) {
        writeFileSync(path, there);
        chmodSync(path, 0o666);
        process.seteuid?.(65534);
        try {
          await expect(opened(path, inputOf(withTokens('a')), { restart: true })).rejects.toMatchObject({
            ...{
              code: 'USAGE',
              message: expect.stringContaining(`${path} cannot be kept from other users: EPERM`) as string,
            },
            hint: expect.stringContaining('another user') as string,
          });
        } finally {
          process.seteuid?.(0);
        }
        expect([readdirSync(directory), readFileSync(path, 'utf8')]).toEqual([['out.csv'], there]);
      }
    },
  );

  it('are refused where nothing says which input they are about', async () => {
    const path = join(temporaryDirectory(), 'out.csv');
    await runOf(path, many);
    rmSync(`${path}.state`);
    await expect(runOf(path, many)).rejects.toThrow(/out.csv.state does not say which input/);
    expect(await runOf(path, many, { restart: true })).toBe(0);
  });
});
