import { createRequire } from 'node:module';
import { Writable } from 'node:stream';
import type { DestinationStream, pino } from 'pino';
import { CatchwordError, messageOf, systemCodeOf } from './errors.ts';
import { printableColoured, printableLines } from './printable.ts';
import { recordOf } from './record-of.ts';

interface FieldTypes {
  readonly number: number;
  readonly string: string;
  readonly strings: readonly string[];
  readonly time: string;
  readonly object: object;
}

/**
 * The fields of a log line, and their types. A name has one type in all lines, because programs that store logs reject a
 * field that is a number in one line and an object in another. `time` is an ISO 8601 string in UTC; a name that ends in
 * `Ms` is a number of milliseconds. docs/log.md explains each field.
 */
export const LOG_FIELDS = {
  ...recordOf('time', 'time', 'from', 'dueAt', 'missedUpTo', 'servedAt', 'nextAt', 'nextTryAt', 'until'),
  ...recordOf('number', 'level', 'pid', 'exitCode'),
  ...recordOf('number', 'run', 'pages', 'ageMs', 'asked', 'answered', 'missing', 'dropped', 'missed'),
  ...recordOf('number', 'attempt', 'failures', 'delayMs', 'pauseMs', 'streams', 'status', 'waitingBytes', 'ended'),
  ...recordOf('number', 'refusedPerMinute', 'limitPerMinute'),
  ...recordOf('number', 'seq', 'cursor', 'lastSeq', 'cap', 'confirmed', 'has', 'upTo'),
  ...recordOf('string', 'msg', 'code', 'reason', 'hint', 'stack', 'role', 'address', 'mirror', 'what'),
  ...recordOf('string', 'kind', 'task', 'vbid', 'cron', 'timezone', 'tick', 'sink', 'after'),
  ...recordOf('string', 'channel', 'topic'),
  ...recordOf('string', 'redis', 'queue', 'method', 'route'),
  ...recordOf('strings', 'services', 'differs'),
  ...recordOf('object', 'result'),
};

export type LogFields = {
  readonly [K in keyof typeof LOG_FIELDS]?: FieldTypes[(typeof LOG_FIELDS)[K]] | null | undefined;
};

export type Logger = Readonly<
  Record<'debug' | 'info' | 'warn' | 'error' | 'fatal', (fields: LogFields, message: string) => void>
>;

/** How lines are written, also those of a thread that logs like the thread that starts it. */
export interface LogSettings {
  readonly level: string;
  /** Whether lines are for a person instead of JSON. Default false. */
  readonly readable?: boolean;
  /** Whether such lines have colours. Default false. */
  readonly colour?: boolean;
  /** Whether lines that are not errors go to stdout. Default false: all lines go to stderr. */
  readonly split?: boolean;
}

type LogOptions = Omit<LogSettings, 'level'>;

/** A message for the operator, although nothing failed. */
export interface Notice {
  /** Constant. A command prints it, followed by the fields `until` and `reason`. */
  readonly message: string;
  readonly fields: LogFields;
}

export type Tell = (notice: Notice) => void;

/** Loads pino and its forms when a line is written: most commands log nothing, and pino takes as long as their work. */
const load = createRequire(import.meta.url);

function loadPino(): typeof pino {
  return load('pino') as typeof pino;
}

/** Names that a secret could have if it were logged by mistake; their values are redacted. */
const SECRET_KEYS = ['apiKey', 'accessToken', 'secret', 'password', 'authorization', 'headers'];

/** Log text that is kept while the disk is full, or while the reader of the log reads nothing. */
const MAX_WAITING_BYTES = 2 ** 20;
/**
 * Lines that waited are written in pieces of at most this size, unless one line is longer. A pipe takes such a piece whole
 * or not at all (PIPE_BUF of Linux), so that no other thread writes into the middle of a line.
 */
const MAX_WRITE_BYTES = 4_096;
/** How often lines that wait are tried again, milliseconds. */
const RETRY_MS = 200;
/** How long a process that ends waits for its log, milliseconds. */
const LAST_TRY_MS = 1_000;

/**
 * Opens a descriptor for log lines. A full disk stops nothing, nor does a pipe without a reader: lines wait, and lines
 * beyond the limit are dropped. Node has made pipes non-blocking when the program used `process.stderr`. A terminal that
 * is stopped, and a file on a disk that hangs, do stop the process: the system has no such mode for them.
 * pino does not retry the waiting lines by itself; writing an empty line makes it do so.
 * @param tell called when lines are written again, with the number of those that were dropped
 */
function output(fd: 1 | 2, tell: (dropped: number) => void, shown = printableLines) {
  let dropped = 0;
  let retry: NodeJS.Timeout | undefined;
  let giveUpAt = Number.NEGATIVE_INFINITY;
  const retryEAGAIN = (): boolean => performance.now() < giveUpAt;
  const limits = { maxLength: MAX_WAITING_BYTES, maxWrite: MAX_WRITE_BYTES };
  const destination = loadPino().destination({ dest: fd, sync: true, ...limits, retryEAGAIN });

  function again(): void {
    retry = undefined;
    destination.write('');
  }

  function atExit(): void {
    giveUpAt = performance.now() + LAST_TRY_MS;
    if (retry !== undefined) again();
  }

  destination
    .on('error', () => {
      if (retry !== undefined) return;
      process.off('exit', atExit).once('exit', atExit);
      retry = setTimeout(again, RETRY_MS).unref();
    })
    .on('drop', () => {
      dropped++;
      destination.write('');
    })
    .on('drain', () => {
      const lost = dropped;
      dropped = 0;
      if (lost > 0) tell(lost);
    });
  // JSON itself does not escape all unprintable characters; they occur only inside its strings.
  return { write: (line: string) => void destination.write(shown(line)) };
}

function readableOutput(colour: boolean, tell: (dropped: number) => void): DestinationStream {
  const pretty = load('pino-pretty') as typeof import('pino-pretty');
  const time = 'SYS:HH:MM:ss';
  const { write } = output(2, tell, printableColoured);
  const destination = new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      write(text);
      done();
    },
  });
  return pretty({ destination, colorize: colour, singleLine: true, ignore: 'pid', translateTime: time });
}

function destinationOf(
  { readable = false, colour = false, split = false }: LogOptions,
  tell: (dropped: number) => void,
): DestinationStream {
  if (readable) return readableOutput(colour, tell);
  if (!split) return output(2, tell);
  const streams = [
    { level: 'trace', stream: output(1, tell) },
    { level: 'error', stream: output(2, tell) },
  ] as const;
  return loadPino().multistream([...streams], { dedupe: true });
}

function openLog(level: string, options: LogOptions): Logger {
  const start = loadPino();
  const log: Logger = start(
    {
      level,
      base: { pid: process.pid },
      timestamp: start.stdTimeFunctions.isoTime,
      redact: { paths: SECRET_KEYS.flatMap((key) => [key, `*.${key}`]), censor: '[secret]' },
    },
    destinationOf(options, (dropped) =>
      log.error({ dropped }, 'log lines were dropped, because the log could not be written'),
    ),
  );
  return log;
}

const LEVELS: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** Makes the logger of the program: JSON lines on stderr, unless `options` say otherwise. The first line opens it. */
export function createLog(level: string, options: LogOptions = {}): Logger {
  let opened: Logger | undefined;

  function method(name: keyof Logger): Logger[typeof name] {
    if (LEVELS.indexOf(name) < LEVELS.indexOf(level)) return () => {};
    return (fields, message) => {
      opened ??= openLog(level, options);
      opened[name](fields, message);
    };
  }

  return {
    debug: method('debug'),
    info: method('info'),
    warn: method('warn'),
    error: method('error'),
    fatal: method('fatal'),
  };
}

/** Describes an error as log fields; with its stack only if it is a defect of the program. */
export function errorFields(error: unknown): LogFields {
  if (error instanceof CatchwordError) return { code: error.code, reason: error.message, hint: error.hint };
  const stack = error instanceof Error ? error.stack : undefined;
  return { code: systemCodeOf(error), reason: messageOf(error), stack };
}
