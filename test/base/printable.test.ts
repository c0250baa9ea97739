import { PassThrough } from 'node:stream';
import { CatchwordError } from '@catchword/base/errors';
import { printable, printableLines } from '@catchword/base/printable';
import { indentedJson } from '@catchword/catalog/json-text';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { rawValue } from '../../packages/catalog/test/raw-json.ts';
import { printLine } from '../../src/cli/commands/shared/output-format.ts';
import { table } from '../../src/report/text.ts';
import { contextWith } from '../support/in-process.ts';

/** Characters that a terminal obeys, or that disguise a text. */
const UNPRINTABLE = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u;
const CLEAR = '\u001b[2J';
const odd = fc.string({ unit: fc.constantFrom(CLEAR, ...'a\n\r\t\0\u007f\u009b\u202e\u2066\u2028é'.split('')) });

/** The text that a terminal or a file receives. */
function printed(text: string, isTTY: boolean): string {
  const stdout = Object.assign(new PassThrough(), { isTTY });
  printLine(contextWith({ stdout }), text);
  return String(stdout.read() ?? '');
}

it('text from a source is printed without control characters', () => {
  fc.assert(
    fc.property(odd, (text) => {
      expect(printable(text)).not.toMatch(UNPRINTABLE);
      expect(printableLines(text).replaceAll('\n', '')).not.toMatch(UNPRINTABLE);
      expect(table(['title'], [[text]]).replaceAll('\n', '')).not.toMatch(UNPRINTABLE);
      const error = new CatchwordError('PAGE_INVALID', text, { hint: text });
      expect(`${error.message}${error.hint}`.replaceAll('\n', '')).not.toMatch(UNPRINTABLE);
      expect(printed(text, false).replaceAll('\n', '')).not.toMatch(UNPRINTABLE);
    }),
  );
});

it('text from a source is printed with escapes for unprintable characters', () => {
  expect(printable(`a${CLEAR}\u009b\u202e\u007f\n\tb é😀`)).toBe('a\\u001b[2J\\u009b\\u202e\\u007f b é😀');
  expect(printable(printable(CLEAR))).toBe(printable(CLEAR));
});

it('text from a source keeps colours on a terminal only', () => {
  const red = '\u001b[31mred\u001b[39m';
  expect(printed(`${red}${CLEAR}`, true)).toBe(`${red}\\u001b[2J\n`);
  expect(printed(red, false)).toBe('\\u001b[31mred\\u001b[39m\n');
});

it('text from a source stays the same JSON value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: odd }), fc.constantFrom(undefined, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(JSON.parse(printableLines(text))).toEqual(JSON.parse(text));
    }),
  );
});

it('indentedJson keeps the value and every digit', () => {
  fc.assert(
    fc.property(rawValue(3), (text) => {
      const shown = indentedJson(text);
      expect(JSON.parse(shown)).toEqual(JSON.parse(text));
      expect(indentedJson(shown)).toBe(shown);
    }),
  );
  expect(indentedJson('{"a":[ ],"b":{},"c":[1.50,{"d":12345678901234567890}]}')).toBe(
    '{\n  "a": [],\n  "b": {},\n  "c": [\n    1.50,\n    {\n      "d": 12345678901234567890\n    }\n  ]\n}',
  );
});

it('indentedJson equals the output of JSON.stringify if that loses nothing', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      expect(indentedJson(text)).toBe(JSON.stringify(JSON.parse(text), null, 2));
    }),
  );
});
