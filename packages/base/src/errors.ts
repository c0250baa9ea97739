import { printableLines } from './printable.ts';

/** Exit codes of commands that end without an error, but found what needs attention. */
export const EXIT = { differences: 3, held: 5 } as const satisfies Record<string, ExitCode>;

/** Meanings of exit codes, and what the user does next. */
export const EXIT_CODES = {
  0: 'done',
  1: 'failed, or unknown whether a write succeeded: check first',
  2: 'wrong usage, settings or credentials',
  3: 'differences were found, or accounts were not verified',
  4: 'incomplete: run the command again to resume',
  5: 'removals are held: approve or reject them',
  75: 'service unavailable or rate limited: retry later',
  129: 'stopped cleanly by SIGHUP',
  130: 'stopped cleanly by SIGINT',
  143: 'stopped cleanly by SIGTERM',
} as const;
export type ExitCode = keyof typeof EXIT_CODES;

/** What documents say of an error for which only its hint can say what to do. */
export const SEE_HINT = 'The hint says what to do.';
const LATER = 'Wait: catchword tries again by itself. If it goes on: `npx catchword doctor`.';

/** @param remedy what a user does, in words of the documents; null: only the hint can say it */
function final<const R extends string | null>(exit: 1 | 2 | 4, meaning: string, remedy: R) {
  return { exit, meaning, remedy, retryable: false } as const;
}

/** The same call may succeed later although nothing was changed. */
function passing<const R extends string | null>(exit: 1 | 2 | 4 | 75, meaning: string, remedy: R) {
  return { exit, meaning, remedy, retryable: true } as const;
}

/** Every error code. Callers match on the code, never on the message. */
// biome-ignore format: a code is a line.
export const ERROR_CODES = {
  USAGE: final(2, 'A command, an option or an argument is wrong; over HTTP, the request.', null),
  CONFIG_INVALID: final(2, 'A setting is missing or wrong.', 'Correct the setting that the message names: see docs/settings.md. `npx catchword settings` prints all.'),
  PACKAGE_MISSING: final(2, 'A package that this needs is not installed, or not compiled.', null),
  MIRROR_UNUSABLE: final(2, 'The mirror file cannot be used: it is not a database, comes from a newer version, or is not writable.', 'If the file is damaged: see docs/backup.md.'),
  MIRROR_OTHER_SOURCE: final(2, 'The mirror belongs to another service than the configured one.', 'Correct `CATCHWORD_BASE_URL`, or use another file. If the service moved: `npx catchword adopt`.'),
  MIRROR_WRITE_FAILED: final(1, 'A write failed (disk full, I/O error); the transaction was rolled back and the writer stopped.', 'Make room, or repair the disk, and start it again: the run goes on. See docs/disks.md.'),
  MIRROR_DISK_LOW: final(1, 'The disk of the mirror has less free space than CATCHWORD_MIN_FREE: no page was requested.', 'Make room, or lower `CATCHWORD_MIN_FREE`.'),
  MIRROR_REPLACED: final(1, 'Another file is at the path of the open one: it was deleted, moved, replaced or restored.', 'Start it again, if the file at that path is the right one. See docs/disks.md.'),
  BACKUP_FAILED: final(1, 'A backup or an export could not be written, or a backup could not be put back. The mirror was not changed.', null),
  MIRROR_BUSY: passing(1, 'Another live process holds the lease, or has the file open.', 'Wait, or stop the other process, which the message names.'),
  LEASE_LOST: final(4, 'Another process took over the lease. Nothing was written.', 'Nothing, if the other process is yours: it goes on. Otherwise stop one of them: see docs/machines.md.'),
  NOT_FOUND: final(1, 'What was asked for does not exist: a run, a product, a sink, a file.', null),
  SEARCH_TIMEOUT: passing(1, 'A search or an expression over HTTP took too long, or had to wait too long for those of others.', 'Search for longer words, use a simpler expression, or ask later.'),
  RUN_NOT_ACTIVE: final(1, 'The state of the run does not allow this: only a held run can be approved, for example.', 'Look at the run: `npx catchword runs`.'),
  RUN_CANCELLED: final(1, 'The run was cancelled, or another process carried out the decision.', 'Nothing. The next run begins at its time, or with `npx catchword sync`.'),
  RUN_TOO_OLD: final(1, 'The run was unfinished for longer than CATCHWORD_RUN_MAX_AGE: it is given up, and a new run begins.', 'Nothing: a new run has begun. If it happens often, runs take too long: raise `CATCHWORD_RUN_MAX_AGE`.'),
  RUN_OUTDATED: final(1, 'The settings changed since the unfinished run started.', 'Nothing: a new run with the new settings has begun.'),
  INTERRUPTED: passing(4, 'A signal stopped it. What was written is kept, and the next start goes on.', 'Start it again.'),
  SOURCE_AUTH: final(2, '401 or 403: the service rejected the API key or the access token.', 'Correct `CATCHWORD_API_KEY` or `CATCHWORD_ACCESS_TOKEN`; then start the daemon again.'),
  SOURCE_NOT_SERVICE: passing(2, 'The address answers, but not like the service (HTML, 404, a redirect).', 'Correct `CATCHWORD_BASE_URL`. If it is right, the service may be in maintenance.'),
  SOURCE_REFUSED: final(1, 'The service rejected the request (any other 4xx).', 'The message has the words of the service. `npx catchword doctor` tries its requests one by one.'),
  SOURCE_UNAVAILABLE: passing(75, 'The service answered 5xx or not at all (connection refused or reset, name not found), or refused a request after it had answered others of the same run.', LATER),
  SOURCE_TIMEOUT: passing(75, 'The service did not answer in time.', LATER),
  SOURCE_RATE_LIMITED: passing(75, 'The service refused because of too many requests (429).', 'Wait: catchword waits as long as the service asks. If it goes on, lower `CATCHWORD_RATE_LIMIT`.'),
  SOURCE_BODY: passing(1, 'A body cut short, larger than allowed, or encoded wrongly.', LATER),
  PAGE_INVALID: passing(1, 'The envelope of a page does not fit the request.', LATER),
  PAGE_BROKEN: passing(1, 'A page is not JSON, and its items cannot be told apart.', 'Tell the service: the message says where in its answer.'),
  XML_INVALID: final(1, 'The answer is not well-formed XML, or is too large.', 'Before you repeat a write, check whether the service has carried it out.'),
  SERVICE_TOKEN: final(2, 'The access token is not valid (601) and could not be renewed.', 'Correct `CATCHWORD_ACCESS_TOKEN`, or the settings of its user, who may be gone.'),
  SERVICE_UNKNOWN_USER: final(1, 'The user does not exist, or was created by another API key (603, 474).', 'Create the user first, with the same API key.'),
  SERVICE_INVALID: final(1, 'The service rejected the content of the request (400, 422, 650).', 'Correct the fields that the message names.'),
  SERVICE_FORBIDDEN: final(1, 'The API key lacks the permission (403 on a write).', 'Ask the service for the permission.'),
  SERVICE_ERROR: final(1, 'Any other code of the service, or an answer that does not fit the request.', null),
  EVENT_INVALID: final(1, 'The text or value is not an event of catchword.', 'Pass the text of one event, unchanged.'),
  QUEUE_UNAVAILABLE: passing(1, 'Redis, which REDIS_URL names, does not answer.', 'Start Redis or correct `REDIS_URL`. A daemon tries again by itself.'),
  QUEUE_MISCONFIGURED: final(2, 'Redis answers, but cannot serve as the queue.', 'See docs/machines.md.'),
  SINK_CONFLICT: final(1, 'The store has changes of another sink, of another mirror, or of this mirror from after the backup that was put back.', 'See docs/sink-trouble.md.'),
  SINK_UNVERIFIED: passing(1, 'The store of a sink could not be compared with its source.', 'The message says why. Remove the cause, then verify again: see docs/verify.md.'),
  NOTIFY_FAILED: passing(1, 'A channel did not take a message.', '`npx catchword notify test` shows why: see docs/notifications.md.'),
};

export type ErrorCode = keyof typeof ERROR_CODES;

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERROR_CODES, value);
}

/** All that a caller may say about an error besides its code and message. */
export type ErrorDetails = Partial<Omit<CatchwordError, keyof Error | 'code' | 'exitCode' | 'with'>> & {
  readonly cause?: unknown;
};

/** The only error class. Message and hint may quote a source, so they are made printable. */
export class CatchwordError extends Error {
  readonly code: ErrorCode;
  /** Whether the same call may succeed later although nothing was changed; by default, what the table says. */
  readonly retryable: boolean;
  /** Advice to the reader, one sentence. `{setting}` is replaced by the name of the setting. */
  readonly hint: string | undefined;
  /** The setting to correct: an environment variable, or an option for users of the library. */
  readonly setting: string | undefined;
  /** Earliest retry that the source allows, in milliseconds from now. */
  readonly retryAfterMs: number | undefined;
  readonly status: number | undefined;
  /** The service's own code, such as 601, at any HTTP status. */
  readonly serviceCode: number | undefined;
  readonly #details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(printableLines(message), details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'CatchwordError';
    this.code = code;
    this.retryable = details.retryable ?? ERROR_CODES[code].retryable;
    const hint = details.hint?.replaceAll('{setting}', details.setting ?? 'the setting');
    this.hint = hint && printableLines(hint);
    this.setting = details.setting;
    this.#details = details;
    this.retryAfterMs = details.retryAfterMs;
    this.status = details.status;
    this.serviceCode = details.serviceCode;
  }

  with(details: ErrorDetails & { readonly code?: ErrorCode; readonly message?: string }): CatchwordError {
    const { code = this.code, message = this.message } = details;
    return new CatchwordError(code, message, { ...this.#details, ...details });
  }

  /** Exit code of a command that ends with this error. 75 would mean "retry later", so a final error exits 1. */
  get exitCode(): number {
    const { exit } = ERROR_CODES[this.code];
    return exit === 75 && !this.retryable ? 1 : exit;
  }
}

/** What to do about an error without a hint; undefined if only a hint could say it. */
export function remedyOf(code: ErrorCode): string | undefined {
  return ERROR_CODES[code].remedy?.replaceAll('`', '');
}

export function usageError(message: string, hint: string, cause?: unknown): CatchwordError {
  return new CatchwordError('USAGE', message, { hint, cause });
}

/** An error as plain data, for a queue or the row of a run. It has no headers and so no credential. */
export type ErrorRecord = Pick<CatchwordError, 'code' | 'message' | 'retryable'> &
  Pick<ErrorDetails, 'hint' | 'retryAfterMs' | 'status' | 'serviceCode'>;

export function toErrorRecord(error: CatchwordError): ErrorRecord {
  const { code, message, retryable, hint, retryAfterMs, status, serviceCode } = error;
  return { code, message, retryable, hint, retryAfterMs, status, serviceCode };
}

export function fromErrorRecord(record: ErrorRecord): CatchwordError {
  return new CatchwordError(record.code, record.message, record);
}

/** What another process or thread made; or an error, which is only a message if it is a defect. */
export type Answer<T> = { readonly made: T } | { readonly error: ErrorRecord | string };

export function toAnswer<T>(work: () => T): Answer<T> {
  try {
    return { made: work() };
  } catch (error) {
    return { error: error instanceof CatchwordError ? toErrorRecord(error) : messageOf(error) };
  }
}

/** @throws the error of an answer */
export function fromAnswer<T>(answer: Answer<T>): T {
  if ('made' in answer) return answer.made;
  throw typeof answer.error === 'string' ? new Error(answer.error) : fromErrorRecord(answer.error);
}

/** Whether this process can no longer use the mirror and must be restarted. */
export function isMirrorLost(error: unknown): boolean {
  return hasCode(error, 'MIRROR_WRITE_FAILED', 'MIRROR_REPLACED');
}

export function hasCode(error: unknown, ...codes: readonly ErrorCode[]): error is CatchwordError {
  return error instanceof CatchwordError && codes.includes(error.code);
}

/** The code that Node.js or a driver gave, such as `ENOENT`; undefined if there is none. */
export function systemCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' || typeof error.code === 'number' ? String(error.code) : undefined;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
