import { createRequire } from 'node:module';
import { printable } from '@catchword/base/printable';
import type pc from 'picocolors';

/** Colours for text on a terminal; for other text they do nothing. */
export type Colours = ReturnType<typeof pc.createColors>;

/** `1,234`; with at most three decimals. The first use of `Intl.NumberFormat` takes 40 ms, as long as the start of Node.js. */
export function count(value: number): string {
  const [whole = '', ...decimals] = `${Math.round(value * 1000) / 1000}`.split('.');
  return [whole.replace(/\B(?=(\d{3})+$)/g, ','), ...decimals].join('.');
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

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A length of time in words that do not change every second. @param ms milliseconds */
export function roughly(ms: number): string {
  if (ms < MINUTE_MS) return 'less than a minute';
  if (ms < 2 * HOUR_MS) return plural(Math.round(ms / MINUTE_MS), 'minute');
  if (ms < 48 * HOUR_MS) return plural(Math.round(ms / HOUR_MS), 'hour');
  return plural(Math.round(ms / (24 * HOUR_MS)), 'day');
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

/** `2026-11-20T03:00:00+01:00`: a time by the clock of a zone. @param timezone IANA name */
export function localIso(ms: number, timezone: string): string {
  // Loading the zones takes up to 40 ms.
  if (timezone === 'UTC') return `${new Date(ms).toISOString().slice(0, 19)}+00:00`;
  const options = { timeZone: timezone, dateStyle: 'short', timeStyle: 'medium' } as const;
  const [date, clock] = new Intl.DateTimeFormat('sv-SE', options).format(ms).split(' ');
  const zone = new Intl.DateTimeFormat('en', { timeZone: timezone, timeZoneName: 'longOffset' }).format(ms);
  return `${date}T${clock}${/[+-]\d\d:\d\d/.exec(zone)?.[0] ?? '+00:00'}`;
}

/** ` (03:00 in Europe/Berlin)`, behind a time in UTC; empty where the clock shows UTC. */
export function clockIn(ms: number, timezone: string): string {
  const local = localIso(ms, timezone);
  return local.endsWith('+00:00') ? '' : ` (${local.slice(11, 16)} in ${timezone})`;
}

/** `2026-11-20 02:00:00 UTC (03:00 in Europe/Berlin)`; in UTC without the second part. */
export function timeIn(ms: number, timezone: string): string {
  return `${time(ms)}${clockIn(ms, timezone)}`;
}

/** Loads the table when it is needed: few commands print one. */
const load = createRequire(import.meta.url);
const EDGES = 'top top-mid top-left top-right bottom bottom-mid bottom-left bottom-right left left-mid right right-mid';
const NO_LINES = Object.fromEntries(`${EDGES} mid mid-mid`.split(' ').map((part) => [part, '']));

/** Columns without lines: numbers are aligned to the right, and text is made printable. */
export function table(head: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const Table = load('cli-table3') as typeof import('cli-table3');
  const made = new Table({
    head: [...head],
    chars: { ...NO_LINES, middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
    colAligns: head.map((_, column) => (typeof rows[0]?.[column] === 'number' ? 'right' : 'left')),
  });
  made.push(...rows.map((row) => row.map((cell) => (typeof cell === 'number' ? count(cell) : printable(cell ?? '–')))));
  return made.toString().replace(/ +$/gm, '');
}
