import { printableLines } from './printable.ts';

/**
 * The one error class. Callers match on `code`, never on the message.
 *
 * `retryable` says whether the same call may succeed later without anybody changing anything. `exit` is the process
 * exit code of a command that ends with this error (0 done, 1 failed, 2 usage or configuration, 3 differences,
 * 4 incomplete, 5 held, 75 source unavailable: try later).
 */
const CODES = {
  USAGE: { exit: 2, retryable: false },
  CONFIG_INVALID: { exit: 2, retryable: false },
  /** The mirror file cannot be used as it is: no database, from a newer version, not writable. */
  MIRROR_UNUSABLE: { exit: 2, retryable: false },
  /** The mirror is that of another service than the one that is set. */
  MIRROR_OTHER_SOURCE: { exit: 2, retryable: false },
  /** A write failed half-way (disk full, I/O error); the transaction is rolled back and the writer stopped. */
  MIRROR_WRITE_FAILED: { exit: 1, retryable: false },
  /** The file that this process has open is no longer the one at its path: it was deleted, moved, replaced or restored. */
  MIRROR_REPLACED: { exit: 1, retryable: false },
  /** Another live process holds the lease. */
  MIRROR_BUSY: { exit: 1, retryable: true },
  /** This process's epoch is old: another keeper took over. Nothing was written. */
  LEASE_LOST: { exit: 4, retryable: false },
  NOT_FOUND: { exit: 1, retryable: false },
  RUN_NOT_ACTIVE: { exit: 1, retryable: false },
  RUN_CANCELLED: { exit: 1, retryable: false },
  RUN_TOO_OLD: { exit: 1, retryable: false },
  /** What was read of an unfinished run was selected by other settings. */
  RUN_OUTDATED: { exit: 1, retryable: false },
  INTERRUPTED: { exit: 4, retryable: true },
  /** 401 or 403: the key or token was refused. */
  SOURCE_AUTH: { exit: 2, retryable: false },
  /** The address answers, but not as the service does (HTML, 404, a redirect). */
  SOURCE_NOT_SERVICE: { exit: 2, retryable: true },
  /** The service refused the request as wrong (other 4xx). */
  SOURCE_REFUSED: { exit: 1, retryable: false },
  /** 5xx, connection refused or reset, name not found. */
  SOURCE_UNAVAILABLE: { exit: 75, retryable: true },
  SOURCE_TIMEOUT: { exit: 75, retryable: true },
  SOURCE_RATE_LIMITED: { exit: 75, retryable: true },
  /** A body cut short, larger than allowed, or encoded wrongly. */
  SOURCE_BODY: { exit: 1, retryable: true },
  /** A page whose envelope does not fit what was asked. */
  PAGE_INVALID: { exit: 1, retryable: true },
  /** A text that is no XML, or more of it than is taken. */
  XML_INVALID: { exit: 1, retryable: false },
  /** The access token is no longer valid (601), and no other could be had. */
  SERVICE_TOKEN: { exit: 2, retryable: false },
  /** There is no such user, or not one that this API key created (603, 474). */
  SERVICE_UNKNOWN_USER: { exit: 1, retryable: false },
  /** What was sent is wrong in itself (400, 422, 650). */
  SERVICE_INVALID: { exit: 1, retryable: false },
  /** This API key may not do it (403 on anything but reading). */
  SERVICE_FORBIDDEN: { exit: 1, retryable: false },
  /** Any other custom code, or an answer that does not fit what was asked. */
  SERVICE_ERROR: { exit: 1, retryable: false },
  QUEUE_UNAVAILABLE: { exit: 1, retryable: true },
  QUEUE_MISCONFIGURED: { exit: 2, retryable: false },
  /** A sink holds what another mirror, or a later state of this one, delivered there. */
  SINK_CONFLICT: { exit: 1, retryable: false },
} as const;

export type ErrorCode = keyof typeof CODES;

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(CODES, value);
}

export interface ErrorDetails {
  /** What the person who reads it should do. One sentence. */
  readonly hint?: string;
  /** Earliest moment of another try, as the source asked: milliseconds from now. */
  readonly retryAfterMs?: number;
  /** HTTP status of the answer that said so. */
  readonly status?: number | undefined;
  /** The service's own code, such as 601, whatever the status was. */
  readonly serviceCode?: number | undefined;
  readonly cause?: unknown;
  /** Overrides the code's default, where the case is known to be final. */
  readonly retryable?: boolean;
}

/** Its message and hint may hold what a source sent: they are made printable, wherever they end up. */
export class CatchwordError extends Error {
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly hint: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly status: number | undefined;
  readonly serviceCode: number | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(printableLines(message), details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'CatchwordError';
    this.code = code;
    this.retryable = details.retryable ?? CODES[code].retryable;
    this.hint = details.hint === undefined ? undefined : printableLines(details.hint);
    this.retryAfterMs = details.retryAfterMs;
    this.status = details.status;
    this.serviceCode = details.serviceCode;
  }

  /** Process exit code of a command that ends with this error. What is final is not to be tried later, as 75 would say. */
  get exitCode(): number {
    const { exit } = CODES[this.code];
    return exit === 75 && !this.retryable ? 1 : exit;
  }
}

/** An error as plain data, for a queue or a run's row. Never carries headers, so never a credential. */
export interface ErrorRecord {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryable: boolean;
  readonly hint?: string;
  readonly retryAfterMs?: number;
  readonly status?: number;
  readonly serviceCode?: number;
}

export function toErrorRecord(error: CatchwordError): ErrorRecord {
  return {
    code: error.code,
    message: error.message,
    retryable: error.retryable,
    ...(error.hint !== undefined && { hint: error.hint }),
    ...(error.retryAfterMs !== undefined && { retryAfterMs: error.retryAfterMs }),
    ...(error.status !== undefined && { status: error.status }),
    ...(error.serviceCode !== undefined && { serviceCode: error.serviceCode }),
  };
}

export function fromErrorRecord(record: ErrorRecord): CatchwordError {
  return new CatchwordError(record.code, record.message, record);
}

/** Whether this process can no longer use the mirror, and has to be started again. */
export function isMirrorLost(error: unknown): boolean {
  return hasCode(error, 'MIRROR_WRITE_FAILED', 'MIRROR_REPLACED');
}

export function hasCode(error: unknown, ...codes: readonly ErrorCode[]): error is CatchwordError {
  return error instanceof CatchwordError && codes.includes(error.code);
}

/** What Node.js or a driver calls it, such as `ENOENT`; undefined where it has no such name. */
export function systemCodeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
