import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { readXml } from '@catchword/xml/read';
import { writeXml } from '@catchword/xml/write';
import { expect } from 'vitest';
import { KEY, type Server, serve } from '../../packages/client/test/connection.ts';
import { runHere } from '../support/in-process.ts';

export const HEAD = 'reference,guid,access_token,email,code,message';

/** Answers each submission; a reference that begins with `no` does not exist. */
export function verify(body: string): string {
  return writeXml({
    name: 'credentials',
    content: (readXml(body)[0]?.children ?? []).map(({ attributes }) => {
      const reference = attributes.get('reference') ?? '';
      if (reference.startsWith('no'))
        return { name: 'error', attributes: { code: '603', message: 'none, sorry', reference } };
      const token = attributes.get('access-token') ?? `t-${reference}`;
      return { name: 'credential', attributes: { reference, guid: 'G', 'access-token': token, email: 'a@b.example' } };
    }),
  });
}

export function settings(server: Server): Record<string, string> {
  return { CATCHWORD_BASE_URL: server.url, CATCHWORD_API_KEY: KEY, CATCHWORD_RATE_LIMIT: 'off' };
}

/** A service, a directory with `users.csv`, and `credentials verify` there. */
export async function place(users?: string | Buffer, reply: Parameters<typeof serve>[0] = ({ body }) => verify(body)) {
  const server = await serve(reply);
  const directory = temporaryDirectory();
  if (users !== undefined) writeFileSync(join(directory, 'users.csv'), users);
  const env = settings(server);
  const verified = (...args: string[]) => runHere(['credentials', 'verify', ...args], env, directory);
  return { server, directory, env, verified, path: (name: string) => join(directory, name) };
}

/** Expects an error of usage whose message contains this text, and whose hint matches. */
export async function expectUsage(work: Promise<unknown>, message: string, hint: RegExp): Promise<void> {
  await expect(work).rejects.toMatchObject({
    code: 'USAGE',
    message: expect.stringContaining(message) as string,
    hint: expect.stringMatching(hint) as string,
  });
}

export function csvOf(count: number): string {
  return `reference\n${Array.from({ length: count }, (_, index) => `r${index}\n`).join('')}`;
}

export function rows(directory: string, name: string): string[] {
  return readFileSync(join(directory, name), 'utf8').trimEnd().split('\n');
}
