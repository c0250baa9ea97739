import { createRequire } from 'node:module';
import { Writable } from 'node:stream';
import { type DestinationStream, pino } from 'pino';
import { CatchwordError, messageOf, systemCodeOf } from './errors.ts';
import { printableLines } from './printable.ts';

/**
 * The fields of a log line, and their types. A name has one type in all lines, because programs that store logs reject a
 * field that is a number in one line and an object in another. `time` is an ISO 8601 string in UTC; a name that ends in
 * `Ms` is a number of milliseconds. docs/operations.md explains each field.
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

/** Takes the fields first, then a constant message. */
export type Logger = Readonly<
  Record<'debug' | 'info' | 'warn' | 'error' | 'fatal', (fields: LogFields, message: string) => void>
>;

export interface LogOptions {
  /** Whether lines are for a person instead of JSON. Default false. */
  readonly readable?: boolean;
  /** Whether such lines have colours. Default false. */
  readonly colour?: boolean;
  /** Whether lines that are not errors go to stdout. Default false: all lines go to stderr. */
  readonly split?: boolean;
}

/** A message for the operator, although nothing failed. */
export interface Notice {
  /** Constant. A command prints it, followed by the fields `until` and `reason`. */
  readonly message: string;
  readonly fields: LogFields;
}

export type Tell = (notice: Notice) => void;

/** Names that a secret could have if it were logged by mistake; their values are redacted. */
const SECRET_KEYS = ['apiKey', 'accessToken', 'secret', 'password', 'authorization', 'headers'];

/** Log text that is kept while the disk is full. */
const MAX_WAITING_BYTES = 2 ** 20;

/**
 * Opens a descriptor for log lines. A full disk stops nothing: lines wait, and those that exceed the limit are dropped.
 * pino does not retry the waiting lines when it drops one; writing an empty line makes it do so.
 */
function output(fd: 1 | 2, shown = printableLines) {
  const destination = pino.destination({ dest: fd, sync: true, maxLength: MAX_WAITING_BYTES });
  destination.on('error', () => {}).on('drop', () => void destination.write(''));
  // JSON itself does not escape all unprintable characters; they occur only inside its strings.
  return { write: (line: string) => void destination.write(shown(line)) };
}

const COLOURS = new RegExp(`(${String.fromCharCode(27)}\\[[\\d;]*m)`);

/** Escapes unprintable characters, but keeps colours. */
function printableWithColours(text: string): string {
  const parts = text.split(COLOURS);
  return parts.map((part, index) => (index % 2 === 1 ? part : printableLines(part))).join('');
}

/** Loads pino-pretty only when needed: it takes as long as the rest of the log. */
function readableOutput(colour: boolean): DestinationStream {
  const pretty = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty');
  const time = 'SYS:HH:MM:ss';
  const { write } = output(2, printableWithColours);
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
 * Makes the logger of the program: JSON lines on stderr, unless `options` say otherwise.
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

/** Describes an error as log fields; with its stack only if it is a defect of the program. */
export function errorFields(error: unknown): LogFields {
  if (error instanceof CatchwordError) return { code: error.code, reason: error.message, hint: error.hint };
  const stack = error instanceof Error ? error.stack : undefined;
  return { code: systemCodeOf(error), reason: messageOf(error), stack };
}
