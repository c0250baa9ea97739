import Table from 'cli-table3';
import pc from 'picocolors';
import type { Run } from '../../catalog/run.ts';
import { CatchwordError } from '../../errors.ts';
import { parseIsoTime } from '../../iso-time.ts';
import { printable, printableLines } from '../../printable.ts';
import { wholeNumber as readWholeNumber } from '../../whole-number.ts';
import type { CommandContext } from './context.ts';

const NUMBER = new Intl.NumberFormat('en-US');

/** `1,234` */
export function count(value: number): string {
  return NUMBER.format(value);
}

/** `1 page`, `2 pages`. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** @param ms milliseconds; a negative length, which a clock that was set back produces, counts as 0 */
export function duration(ms: number): string {
  if (ms < 10_000) return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The clocks of two machines usually differ by less than this. */
export const SKEW_MS = 60_000;

/** `5.0 s ago`; a time in the future shows that a clock is wrong. */
export function ago(thenMs: number, nowMs: number): string {
  const ms = nowMs - thenMs;
  return ms > -SKEW_MS ? `${duration(ms)} ago` : `${duration(-ms)} in the future: check the clock of this machine`;
}

export function size(bytes: number): string {
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(0)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

/** `2026-11-20 02:00:00`, in UTC. */
export function moment(ms: number | null): string {
  return ms === null ? '–' : new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
}

/** `2026-11-20 02:00:00 UTC`. @param at milliseconds since 1970, or ISO 8601 */
export function time(at: number | string): string {
  return `${moment(typeof at === 'string' ? Date.parse(at) : at)} UTC`;
}

/** What a run that settles waits for, and until when; null if it does not settle. */
export function settlingText({ settlesAt, missing }: Pick<Run, 'settlesAt' | 'missing'>): string | null {
  if (settlesAt === null) return null;
  const end = moment(settlesAt).slice(11);
  const head = `settling until ${time(settlesAt)}: `;
  if (missing === 0) return `${head}a last delta at ${end} decides whether a product was missed`;
  const unseen = `${plural(missing, 'product')} ${missing === 1 ? 'was' : 'were'} not seen`;
  return `${head}${unseen}; a last delta at ${end} decides`;
}

export function isTerminal(stream: NodeJS.WritableStream): boolean {
  return 'isTTY' in stream && stream.isTTY === true;
}

/** Colours if the stream is a terminal and NO_COLOR is not set. */
export function colours(context: CommandContext, stream: NodeJS.WritableStream) {
  return pc.createColors(isTerminal(stream) && !context.environment.NO_COLOR);
}

const EDGES = 'top top-mid top-left top-right bottom bottom-mid bottom-left bottom-right left left-mid right right-mid';
const NO_LINES = Object.fromEntries(`${EDGES} mid mid-mid`.split(' ').map((part) => [part, '']));

/** Columns without lines: numbers are aligned to the right, and text is made printable. */
export function table(head: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const made = new Table({
    head: [...head],
    chars: { ...NO_LINES, middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
    colAligns: head.map((_, column) => (typeof rows[0]?.[column] === 'number' ? 'right' : 'left')),
  });
  made.push(...rows.map((row) => row.map((cell) => (typeof cell === 'number' ? count(cell) : printable(cell ?? '–')))));
  return made.toString().replace(/ +$/gm, '');
}

/** A service's text on one line: control characters as spaces, other unprintable characters escaped. */
export function plain(text: string): string {
  return printable(text.replace(/\p{Cc}+/gu, ' '));
}

/** The sequences that `colours` makes. */
const COLOUR = new RegExp(`(${String.fromCharCode(27)}\\[\\d+(?:;\\d+)*m)`);

/** Prints text for a person. Escapes what a terminal would obey, except colours if they are on. */
export function printLine(context: CommandContext, text = ''): void {
  const parts = colours(context, context.stdout).isColorSupported ? text.split(COLOUR) : [text];
  const shown = parts.map((part, index) => (index % 2 === 1 ? part : printableLines(part)));
  context.stdout.write(`${shown.join('')}\n`);
}

export function printJson(context: CommandContext, value: unknown): void {
  context.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Prints the result of a command: a JSON document with `--json`, otherwise lines for a person. */
export function print(
  context: CommandContext,
  { json: asJson }: { readonly json?: boolean | undefined },
  json: unknown,
  text: string | readonly string[],
): void {
  if (asJson === true) printJson(context, json);
  else printLine(context, [text].flat().join('\n'));
}

function invalid(name: string, value: string, what: string, hint: string): CatchwordError {
  return new CatchwordError('USAGE', `${name}: ${JSON.stringify(value)} is not ${what}`, { hint });
}

/** Parses a whole number of the command line. */
export function wholeNumber(name: string, min: number, max = Number.MAX_SAFE_INTEGER): (value: string) => number {
  return (value) => {
    const number = readWholeNumber(value, min, max);
    if (number === null) throw invalid(name, value, `a whole number of ${min} or more`, 'See --help.');
    return number;
  };
}

/** Parses a time of the command line, in UTC unless it names a zone. @returns milliseconds since 1970 */
export function isoMoment(name: string): (value: string) => number {
  return (value) => {
    const ms = parseIsoTime(value);
    if (ms === null) throw invalid(name, value, 'a time', 'Use ISO 8601, such as 2026-11-20T02:00:00Z.');
    return ms;
  };
}
