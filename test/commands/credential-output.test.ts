import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { toFile } from '../../src/commands/credential-output.ts';
import { temporaryDirectory } from '../support/mirror.ts';

const HEAD = 'reference,guid,access_token,email,code,message\n';

async function* referring(...references: string[]) {
  for (const reference of references) yield { submission: { reference }, end: 0 };
}

describe('results of an earlier run', () => {
  it.each(['csv', 'ndjson'] as const)('may end inside a character (%s)', async (format) => {
    const path = join(temporaryDirectory(), 'out');
    const line = format === 'csv' ? 'Zoë,G,t,,,' : '{"ok":true,"reference":"Zoë","guid":"G","access_token":"t"}';
    const bytes = Buffer.from(line);
    const torn = bytes.subarray(0, bytes.indexOf(Buffer.from('ë')) + 1);
    const head = format === 'csv' ? HEAD : '';
    writeFileSync(path, Buffer.concat([Buffer.from(head), torn]));
    const output = await toFile(path, format, referring('Zoë'));
    await output.close();
    expect(output.done).toBe(0);
    expect(readFileSync(path, 'utf8')).toBe(head);
  });
});
