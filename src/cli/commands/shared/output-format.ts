import { once } from 'node:events';
import { usageError } from '@catchword/base/errors';
import { parseIsoTime } from '@catchword/base/iso-time';
import { printable, printableColoured, printableLines } from '@catchword/base/printable';
import { wholeNumber as readWholeNumber } from '@catchword/base/whole-number';
import pc from 'picocolors';
import type { Colours } from '../../../report/text.ts';
import type { CommandContext, ProcessContext } from './command-context.ts';

export const isTerminal = (stream: NodeJS.WritableStream): boolean => 'isTTY' in stream && stream.isTTY === true;

/** Colours if the stream is a terminal and NO_COLOR is not set. */
export function colours({ environment, stdout }: ProcessContext, stream = stdout): Colours {
  return pc.createColors(isTerminal(stream) && !environment.NO_COLOR);
}

/** A service's text on one line: control characters as spaces, other unprintable characters escaped. */
export function plain(text: string): string {
  return printable(text.replace(/\p{Cc}+/gu, ' '));
}

/** Prints text for a person. Escapes what a terminal would obey, except colours if they are on. */
export function printLine(context: CommandContext, text = ''): void {
  const shown = colours(context).isColorSupported ? printableColoured(text) : printableLines(text);
  context.stdout.write(`${shown}\n`);
}

/** Resolves when stdout takes more, or the command is stopped. */
export async function drained({ stdout, signal }: CommandContext): Promise<void> {
  await once(stdout, 'drain', { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

export interface JsonOption {
  readonly json?: boolean | undefined;
}

/** The result of a command: a document for `--json`, and lines for a person. */
export interface Result {
  readonly json: unknown;
  readonly text: string | readonly string[];
}

export function print(context: CommandContext, { json: asJson }: JsonOption, { json, text }: Result): void {
  if (asJson === true) context.stdout.write(`${JSON.stringify(json)}\n`);
  else printLine(context, [text].flat().join('\n'));
}

/** Parses a whole number of the command line. */
export function wholeNumber(name: string, min: number, max = Number.MAX_SAFE_INTEGER): (value: string) => number {
  const range = max === Number.MAX_SAFE_INTEGER ? `of ${min} or more` : `from ${min} to ${max}`;
  return (value) => {
    const number = readWholeNumber(value, min, max);
    if (number !== null) return number;
    throw usageError(
      `${name}: ${JSON.stringify(value)} is not a whole number ${range}`,
      'See the command with --help.',
    );
  };
}

/** Parses a time of the command line, in UTC unless it names a zone. @returns milliseconds since 1970 */
export function isoMoment(name: string): (value: string) => number {
  return (value) => {
    const ms = parseIsoTime(value);
    if (ms !== null) return ms;
    throw usageError(`${name}: ${JSON.stringify(value)} is not a time`, 'Use ISO 8601, such as 2026-11-20T02:00:00Z.');
  };
}
