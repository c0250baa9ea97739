import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CredentialSubmission } from '../../src/client/credentials/submission.ts';
import { readCredentials } from '../../src/commands/credentials/input.ts';
import { sourceUntil } from '../../src/commands/shared/input-stream.ts';
import { readXml } from '../../src/xml/read.ts';
import { writeXml } from '../../src/xml/write.ts';
import { contextWith } from '../support/in-process.ts';
import { temporaryDirectory } from '../support/mirror.ts';

async function* inPieces(text: string, length: number) {
  for (let at = 0; at < text.length; at += length) yield Buffer.from(text.slice(at, at + length));
}

async function read(path: string, stdin: AsyncIterable<Uint8Array> = inPieces('', 1)) {
  const { submissions } = await readCredentials(path, (from) =>
    from === '-' ? stdin : sourceUntil(contextWith({}), from),
  );
  const read: unknown[] = [];
  for await (const { submission } of submissions) read.push(submission);
  return read;
}

describe('what is to be verified', () => {
  it.each([
    ['"a"\n"b"\n', ['a', 'b']],
    ['"a \\" b"\n', ['a " b']],
    ['"a"', ['a']],
    ['{"reference":"a"}\n"b"', ['a', 'b']],
    ['"reference"\na\n', ['a']],
    ['"Reference","guid"\na,\n', ['a']],
    ['\nreference\na\n', ['a']],
  ])('from stdin is told apart: %j', async (text, references) => {
    for (const length of [1, 1_000]) {
      expect(await read('-', inPieces(text, length))).toEqual(references.map((reference) => ({ reference })));
    }
  });

  it.each([
    ['fewer fields than the header', 'reference,email\na\n'],
    ['empty fields at the end, as spreadsheets write them', 'reference,email\na,b,,\n'],
    ['a column without a name', 'reference,,\na,b,c\n'],
    ['a column twice that is not read', 'note,note,reference\nx,y,a\n'],
  ])('may have %s', async (_name, text) => {
    const path = join(temporaryDirectory(), 'users.csv');
    writeFileSync(path, text);
    expect(await read(path)).toEqual([{ reference: 'a' }]);
  });

  it('may have keys whose full batch is answered with no more than is taken', async () => {
    const longest = 'x'.repeat(255);
    const path = join(temporaryDirectory(), 'users.csv');
    writeFileSync(path, `reference\n${`${longest}\n`.repeat(10_000)}`);
    const submitted = (await read(path)) as CredentialSubmission[];
    const element = { name: 'credential', attributes: { guid: 'G'.repeat(36), email: 'e'.repeat(128) } };
    const content = submitted.map(({ reference }) => ({
      ...element,
      attributes: { ...element.attributes, reference, 'access-token': 't'.repeat(64) },
    }));
    expect(readXml(writeXml({ name: 'credentials', content }))[0]?.children).toHaveLength(10_000);
  });

  it.each([
    ['a number', '{"reference":"a"}\n{"reference":123}\n', 'line 2: its reference is no text', /quotes/],
    ['a control character', '"a"\n"b\\u0007"\n', 'line 2: its reference holds a character', /Remove it/],
    ['nobody', '"a"\n{}\n', 'line 2: it names no account', /columns/],
    ['NDJSON under another name', '{"reference":"a"}\n', 'line 1: it is no CSV', /called \.ndjson/, 'users.json'],
    ['an array', '[{"reference":"a"},\n{"reference":"b"}]\n', 'line 1: it is no CSV', /a line/, 'users.json'],
    ['texts under another name', '"a"\n"b"\n', 'names no column', /called \.ndjson/, 'users.txt'],
    ['a comma too many', 'reference,email\nr1,a@b.c\nr2,jr,x@y.z\n', 'line 3: 3 fields', /in quotes/, 'users.csv'],
    ['a comma in a name', 'name,reference\nDoe, Jane,r2\n', 'and the header has 2', /in quotes/, 'users.csv'],
    ['fields without a column', 'reference\nr1,too,many\n', 'line 2: 3 fields', /in quotes/, 'users.csv'],
    ['a column twice', 'reference,name,Reference\na,b,c\n', 'line 1: it names the column ref', /Leave/, 'users.csv'],
    ['two tokens', 'access_token,access-token\na,b\n', 'the column access-token twice', /Leave/, 'users.csv'],
    ['a long text', `"a"\n"${'x'.repeat(256)}"\n`, 'line 2: its reference has 256 characters', /At most 255/],
    ['a long field', `guid\n${'x'.repeat(70_000)}\n`, 'line 2: its guid has 70000', /quote/, 'users.csv'],
  ])('is refused with its line: %s', async (_name, text, message, hint, name = 'users.ndjson') => {
    const path = join(temporaryDirectory(), name);
    writeFileSync(path, text);
    await expect(read(path)).rejects.toMatchObject({
      ...{ code: 'USAGE', message: expect.stringContaining(message) as string },
      hint: expect.stringMatching(hint) as string,
    });
  });
});
