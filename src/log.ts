import { createRequire } from 'node:module';
import { Writable } from 'node:stream';
import { type DestinationStream, pino } from 'pino';
import { CatchwordError, messageOf, systemCodeOf } from './errors.ts';
import { printableLines } from './printable.ts';

/**
 * Every field that a line of the log may have, and what it holds. A name means the same in every line, because programs
 * that store logs refuse a field that is a number here and an object there. `time` is an ISO 8601 string, UTC; a name that
 * ends in `Ms` is a number of milliseconds. docs/operations.md says what each means.
 */
export const LOG_FIELDS = {
  time: 'time',
  level: 'number',
  pid: 'number',
  msg: 'string',
  code: 'string',
  reason: 'string',
  hint: 'string',
  stack: 'string',
  exitCode: 'number',
  role: 'string',
  services: 'strings',
  address: 'string',
  mirror: 'string',
  run: 'number',
  kind: 'string',
  result: 'object',
  pages: 'number',
  from: 'time',
  ageMs: 'number',
  asked: 'number',
  answered: 'number',
  task: 'string',
  attempt: 'number',
  delayMs: 'number',
  vbid: 'string',
  cron: 'string',
  timezone: 'string',
  tick: 'string',
  dueAt: 'time',
  servedAt: 'time',
  nextAt: 'time',
  pauseMs: 'number',
  nextTryAt: 'time',
  until: 'time',
  failures: 'number',
  sink: 'string',
  seq: 'number',
  cursor: 'number',
  lastSeq: 'number',
  cap: 'number',
  confirmed: 'number',
  has: 'number',
  upTo: 'number',
  dropped: 'number',
  missing: 'number',
  redis: 'string',
  queue: 'string',
  what: 'string',
  after: 'string',
  streams: 'number',
  method: 'string',
  route: 'string',
  status: 'number',
} as const;

interface FieldTypes {
  readonly number: number;
  readonly string: string;
  readonly strings: readonly string[];
  readonly time: string;
  readonly object: object;
}

export type LogFields = {
  readonly [K in keyof typeof LOG_FIELDS]?: FieldTypes[(typeof LOG_FIELDS)[K]] | null | undefined;
};

type Log = (fields: LogFields, message: string) => void;

/** The fields first, then a constant message. */
export interface Logger {
  readonly debug: Log;
  readonly info: Log;
  readonly warn: Log;
  readonly error: Log;
  readonly fatal: Log;
}

export interface LogOptions {
  /** Lines for a person instead of JSON. Default false. */
  readonly readable?: boolean;
  /** Colours in them. Default false. */
  readonly colour?: boolean;
  /** What is not an error goes to stdout. Default false: everything goes to stderr. */
  readonly split?: boolean;
}

/** Something that a person who watches should know, although nothing failed. */
export interface Notice {
  /** Constant. A command prints it, followed by the fields `until` and `reason`. */
  readonly message: string;
  readonly fields: LogFields;
}

export type Tell = (notice: Notice) => void;

/** Names under which a secret could be passed by mistake; their values are never written. */
const SECRET_KEYS = ['apiKey', 'accessToken', 'secret', 'password', 'authorization', 'headers'];

/** Bytes. */
const MAX_WAITING = 2 ** 20;

/**
 * A log that cannot be written stops nothing; of what waits for a disk with room, no more than that is kept. Lines beyond
 * it are dropped without a try to write, so an empty one, which never is, tries what waits in their place.
 */
function output(fd: 1 | 2, shown = printableLines) {
  const destination = pino.destination({ dest: fd, sync: true, maxLength: MAX_WAITING });
  destination.on('error', () => {}).on('drop', () => void destination.write(''));
  // JSON escapes only a part of what a terminal obeys; such characters stand inside of strings alone.
  return { write: (line: string) => void destination.write(shown(line)) };
}

const COLOURS = new RegExp(`(${String.fromCharCode(27)}\\[[\\d;]*m)`);

/** Colours alone do no harm, whichever text they came with. */
function printableButColours(text: string): string {
  const parts = text.split(COLOURS);
  return parts.map((part, index) => (index % 2 === 1 ? part : printableLines(part))).join('');
}

/** Loaded only for a person: it takes as long to load as all else that a log needs. */
function readableOutput(colour: boolean): DestinationStream {
  const pretty = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty');
  const time = 'SYS:HH:MM:ss';
  const { write } = output(2, printableButColours);
  const destination = new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      write(text);
      done();
    },
  });
  return pretty({ destination, colorize: colour, singleLine: true, ignore: 'pid', translateTime: time });
}

function destinationOf({ readable = false, colour = false, split = false }: LogOptions): DestinationStream {
  if (readable) return readableOutput(colour);
  if (!split) return output(2);
  const streams = [
    { level: 'trace', stream: output(1) },
    { level: 'error', stream: output(2) },
  ] as const;
  return pino.multistream([...streams], { dedupe: true });
}

/**
 * The program's logger: JSON lines on stderr, unless `options` say otherwise.
 * @param level a pino level, or `silent`
 */
export function createLog(level: string, options: LogOptions = {}): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: SECRET_KEYS.flatMap((key) => [key, `*.${key}`]), censor: '[secret]' },
    },
    destinationOf(options),
  );
}

/** An error as fields of a line; the stack only of one that is a defect of the program. */
export function errorFields(error: unknown): LogFields {
  if (error instanceof CatchwordError) return { code: error.code, reason: error.message, hint: error.hint };
  const stack = error instanceof Error ? error.stack : undefined;
  return { code: systemCodeOf(error), reason: messageOf(error), stack };
}
