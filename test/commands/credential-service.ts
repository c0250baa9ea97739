import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readXml } from '../../src/xml/read.ts';
import { writeXml } from '../../src/xml/write.ts';
import { KEY, type Server } from '../client/connection.ts';
import { type Printed, runHere } from '../support/in-process.ts';

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

export async function verified(server: Server, directory: string, args: string[], more = {}): Promise<Printed> {
  return await runHere(['credentials', 'verify', ...args], { ...settings(server), ...more }, directory);
}

export function csvOf(count: number): string {
  return `reference\n${Array.from({ length: count }, (_, index) => `r${index}\n`).join('')}`;
}

export function rows(directory: string, name: string): string[] {
  return readFileSync(join(directory, name), 'utf8').trimEnd().split('\n');
}
