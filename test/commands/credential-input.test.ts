import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readCredentials } from '../../src/commands/credential-input.ts';
import { sourceUntil } from '../../src/commands/source.ts';
import { temporaryDirectory } from '../support/mirror.ts';

async function* inPieces(text: string, length: number) {
  for (let at = 0; at < text.length; at += length) yield Buffer.from(text.slice(at, at + length));
}

async function read(path: string, stdin: AsyncIterable<Uint8Array> = inPieces('', 1)) {
  const { submissions } = await readCredentials(path, (from) =>
    from === '-' ? stdin : sourceUntil(new AbortController().signal, from),
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
    ['a number', '{"reference":"a"}\n{"reference":123}\n', 'line 2: its reference is no text', /quotes/],
    ['a control character', '"a"\n"b\\u0007"\n', 'line 2: its reference holds a character', /Remove it/],
    ['nobody', '"a"\n{}\n', 'line 2: it names no account', /columns/],
    ['NDJSON under another name', '{"reference":"a"}\n', 'line 1: it is no CSV', /called \.ndjson/, 'users.json'],
    ['an array', '[{"reference":"a"},\n{"reference":"b"}]\n', 'line 1: it is no CSV', /a line/, 'users.json'],
    ['texts under another name', '"a"\n"b"\n', 'names no column', /called \.ndjson/, 'users.txt'],
  ])('is refused with its line: %s', async (_name, text, message, hint, name = 'users.ndjson') => {
    const path = join(temporaryDirectory(), name);
    writeFileSync(path, text);
    await expect(read(path)).rejects.toMatchObject({
      ...{ code: 'USAGE', message: expect.stringContaining(message) as string },
      hint: expect.stringMatching(hint) as string,
    });
  });
});
