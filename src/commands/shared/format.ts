import Table from 'cli-table3';
import pc from 'picocolors';
import { CatchwordError } from '../../errors.ts';
import { parseIsoTime } from '../../iso-time.ts';
import { printable, printableLines } from '../../printable.ts';
import type { CommandContext } from './context.ts';

const NUMBER = new Intl.NumberFormat('en-US');

export function count(value: number): string {
  return NUMBER.format(value);
}

/** `1 page`, `2 pages`. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** @param ms milliseconds; less than 0, which a clock that was put back makes, counts as 0 */
export function duration(ms: number): string {
  if (ms < 10_000) return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Clocks of two machines differ by less than this on an ordinary day. */
export const SKEW_MS = 60_000;

/** How long ago a moment is: `5.0 s ago`. One in the future shows that a clock is wrong. */
export function ago(thenMs: number, nowMs: number): string {
  const ms = nowMs - thenMs;
  return ms > -SKEW_MS ? `${duration(ms)} ago` : `${duration(-ms)} in the future: check the clock of this machine`;
}

export function size(bytes: number): string {
  return bytes < 1e6
    ? `${(bytes / 1e3).toFixed(0)} kB`
    : bytes < 1e9
      ? `${(bytes / 1e6).toFixed(1)} MB`
      : `${(bytes / 1e9).toFixed(2)} GB`;
}

/** Time for a person: to the second, without the letters. */
export function moment(ms: number | null): string {
  return ms === null ? '–' : new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
}

export function isTerminal(stream: NodeJS.WritableStream): boolean {
  return 'isTTY' in stream && stream.isTTY === true;
}

/** Colours where the stream is a terminal and NO_COLOR is not set. */
export function colours(context: CommandContext, stream: NodeJS.WritableStream) {
  return pc.createColors(isTerminal(stream) && !context.environment.NO_COLOR);
}

/** Columns without lines. A number is set to the right; a text is made printable. */
export function table(head: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const none = { top: '', 'top-mid': '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-mid': '' };
  const sides = { 'bottom-left': '', 'bottom-right': '', left: '', 'left-mid': '', mid: '', 'mid-mid': '' };
  const made = new Table({
    head: [...head],
    chars: { ...none, ...sides, right: '', 'right-mid': '', middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
    colAligns: head.map((_, column) => (typeof rows[0]?.[column] === 'number' ? 'right' : 'left')),
  });
  made.push(...rows.map((row) => row.map((cell) => (typeof cell === 'number' ? count(cell) : printable(cell ?? '–')))));
  return made
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

export function printJson(context: CommandContext, value: unknown): void {
  context.stdout.write(`${JSON.stringify(value)}\n`);
}

/** A service's text on one line: control characters as spaces, and what else is unprintable escaped. */
export function plain(text: string): string {
  return printable(text.replace(/\p{Cc}+/gu, ' '));
}

/** The sequences that `colours` makes. */
const COLOUR = new RegExp(`(${String.fromCharCode(27)}\\[\\d+(?:;\\d+)*m)`);

/** Prints text for a person. What a terminal would obey is escaped, other than colours where there are any. */
export function printLine(context: CommandContext, text = ''): void {
  const parts = colours(context, context.stdout).isColorSupported ? text.split(COLOUR) : [text];
  const shown = parts.map((part, index) => (index % 2 === 1 ? part : printableLines(part)));
  context.stdout.write(`${shown.join('')}\n`);
}

/**
 * A whole number given on the command line.
 * @throws CatchwordError USAGE
 */
export function wholeNumber(name: string, min: number, max = Number.MAX_SAFE_INTEGER): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (/^\d+$/.test(value) && number >= min && number <= max) return number;
    throw new CatchwordError('USAGE', `${name}: ${JSON.stringify(value)} is not a whole number of ${min} or more`, {
      hint: 'See --help.',
    });
  };
}

/**
 * A moment given on the command line, UTC where it names no zone, as milliseconds since 1970.
 * @throws CatchwordError USAGE
 */
export function isoMoment(name: string): (value: string) => number {
  return (value) => {
    const ms = parseIsoTime(value);
    if (ms !== null) return ms;
    throw new CatchwordError('USAGE', `${name}: ${JSON.stringify(value)} is not a time`, {
      hint: 'ISO 8601 is needed, such as 2026-11-20T02:00:00Z.',
    });
  };
}
