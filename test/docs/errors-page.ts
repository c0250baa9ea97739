import { ERROR_CODES, type ErrorCode } from '../../src/base/errors.ts';
import { STATUS } from '../../src/http/http-error.ts';
import { GENERATED, tableOf } from './reference.ts';

/* docs/errors.md: the table of src/base/errors.ts with what a user does about each code, and the codes of HTTP. */

const HINT = 'The hint says what to do.';
const LATER = 'Wait: catchword tries again by itself. If it goes on: `npx catchword doctor`.';

/** What to do; the meanings are in src/base/errors.ts. */
const REMEDIES: Readonly<Record<ErrorCode, string>> = {
  USAGE: 'The hint shows what is allowed; `--help` after the command has all options.',
  CONFIG_INVALID:
    'Correct the setting that the message names: [settings](settings.md). `npx catchword settings` prints all.',
  PACKAGE_MISSING: 'Run the command of the hint.',
  MIRROR_UNUSABLE: `${HINT} If the file is damaged: [backup](backup.md).`,
  MIRROR_OTHER_SOURCE:
    'Correct `CATCHWORD_BASE_URL`, or use another file. If the service moved: `npx catchword adopt`.',
  MIRROR_WRITE_FAILED: 'Make room, or repair the disk, and start it again: the run goes on. See [disks](disks.md).',
  MIRROR_DISK_LOW: 'Make room, or lower `CATCHWORD_MIN_FREE`.',
  MIRROR_REPLACED: 'Start it again, if the file at that path is the right one. See [disks](disks.md).',
  BACKUP_FAILED: HINT,
  MIRROR_BUSY: 'Wait, or stop the other process, which the message names.',
  LEASE_LOST: 'Nothing, if the other process is yours: it goes on. Otherwise stop one of them: [standby](standby.md).',
  NOT_FOUND: HINT,
  SEARCH_TIMEOUT: 'Search for longer words, use a simpler expression, or ask later.',
  RUN_NOT_ACTIVE: 'Look at the run: `npx catchword runs`.',
  RUN_CANCELLED: 'Nothing. The next run begins at its time, or with `npx catchword sync`.',
  RUN_TOO_OLD: 'Nothing: a new run has begun. If it happens often, runs take too long: raise `CATCHWORD_RUN_MAX_AGE`.',
  RUN_OUTDATED: 'Nothing: a new run with the new settings has begun.',
  INTERRUPTED: 'Start it again.',
  SOURCE_AUTH: 'Correct `CATCHWORD_API_KEY` or `CATCHWORD_ACCESS_TOKEN`; then start the daemon again.',
  SOURCE_NOT_SERVICE: 'Correct `CATCHWORD_BASE_URL`. If it is right, the service may be in maintenance.',
  SOURCE_REFUSED: 'The message has the words of the service. `npx catchword doctor` tries its requests one by one.',
  SOURCE_UNAVAILABLE: LATER,
  SOURCE_TIMEOUT: LATER,
  SOURCE_RATE_LIMITED:
    'Wait: catchword waits as long as the service asks. If it goes on, lower `CATCHWORD_RATE_LIMIT`.',
  SOURCE_BODY: LATER,
  PAGE_INVALID: LATER,
  PAGE_BROKEN: 'Tell the service: the message says where in its answer.',
  XML_INVALID: 'Before you repeat a write, look whether the service has carried it out.',
  SERVICE_TOKEN: 'The user of the token may be gone. The hint says which setting to correct.',
  SERVICE_UNKNOWN_USER: 'Create the user first, with the same API key.',
  SERVICE_INVALID: 'Correct the fields that the message names.',
  SERVICE_FORBIDDEN: 'Ask the service for the permission.',
  SERVICE_ERROR: HINT,
  EVENT_INVALID: 'Pass the text of one event, unchanged.',
  QUEUE_UNAVAILABLE: 'Start Redis or correct `REDIS_URL`. A daemon tries again by itself.',
  QUEUE_MISCONFIGURED: `${HINT} See [redis](redis.md).`,
  SINK_CONFLICT: `${HINT} See [a sink has a problem](sink-trouble.md).`,
  SINK_UNVERIFIED: 'The message says why. Remove the cause, then verify again: [verify](verify.md).',
  NOTIFY_FAILED: '`npx catchword notify test` shows why: see [notifications](notifications.md).',
};

const STREAM = 'Discard what you have and begin with `after=0`: see [the stream](stream.md).';

/** Meaning and remedy of the codes in `error.code` of an answer. */
const HTTP: Readonly<Record<keyof typeof STATUS, readonly [meaning: string, remedy: string]>> = {
  USAGE: ['The request is wrong.', 'The hint shows what is allowed; `/openapi.json` describes every request.'],
  UNKNOWN_PLACE: ['`after` is not from such a log.', STREAM],
  UNAUTHORIZED: ['The token is missing or wrong.', 'Send `Authorization: Bearer` with the token.'],
  HOST_REFUSED: ['Without a token, only local host names are served.', 'Set `CATCHWORD_HTTP_TOKEN`.'],
  CROSS_SITE_REFUSED: ['A page of another site made the request.', 'Ask from your own server.'],
  NOT_FOUND: ['The path, the product or the run does not exist.', HINT],
  METHOD_NOT_ALLOWED: ['Only `GET` and `HEAD` are answered.', 'Decide by a command: see [decisions](decisions.md).'],
  OTHER_MIRROR: ['`after` is from another mirror.', STREAM],
  OTHER_VIEW: ['`after` was read with other `where` and `fields`.', 'Send the same ones, or begin with `after=0`.'],
  RESTORED: ['`after` is from before the mirror was restored.', STREAM],
  TOO_MANY_WRONG_TOKENS: ['This address sent too many wrong tokens.', 'Wait as long as `Retry-After` says.'],
  INTERNAL: ['The request failed inside catchword: a defect.', 'Report what the log says.'],
  TOO_MANY_VIEWS: [
    'Open streams have as many different views (`where` and `fields`) as are allowed.',
    'Use the view of another stream, or wait as long as `Retry-After` says.',
  ],
  TOO_MANY_STREAMS: ['As many streams are open as are allowed.', 'Wait as long as `Retry-After` says.'],
  MIRROR_BUSY: ['Another program locks the mirror.', 'Ask again.'],
  MIRROR_UNUSABLE: ['The mirror cannot be read.', 'See its row above.'],
  OVERLOADED: ['Too much data waits for slow readers.', 'Wait as long as `Retry-After` says.'],
  SEARCH_TIMEOUT: [
    'The search, `where` or `fields`, or what others asked for, took too long.',
    'Search for longer words, use a simpler expression, or ask later.',
  ],
  STALLED: ['The process that should answer hangs.', 'Nothing: a process manager that asks `/healthz` restarts it.'],
  STOPPING: ['catchword stops.', 'Ask again after the restart.'],
};

function errorRow([code, { meaning, exit, retryable }]: readonly [string, (typeof ERROR_CODES)[ErrorCode]]) {
  const quoted = meaning.replace(/\b[A-Z]+(?:_[A-Z]+)+\b/g, '`$&`');
  return [`\`${code}\``, quoted, String(exit), retryable ? 'yes' : 'no', REMEDIES[code as ErrorCode]];
}

export function errorsPage(): string {
  const rows = Object.entries(ERROR_CODES).map(errorRow);
  const answers = Object.entries(STATUS).map(([code, status]) => [
    `\`${code}\``,
    String(status),
    ...HTTP[code as keyof typeof STATUS],
  ]);
  return `${[
    '# Errors by code',
    GENERATED,
    'A command prints its error as `error message [CODE]` and, on the next line, `hint` and what to do. With `--json` it prints, on stderr too, the line `{"error":{"code":…,"message":…,"hint":…}}`, as the API answers; `INTERNAL` is a defect there, and `OUTPUT_LOST` says that stdout cannot be written. A log line has `code` and `hint`, and the library throws a `CatchwordError` with `code`, `hint` and `retryable`. Match the code: messages may change.',
    '## Commands, logs and the library',
    'Retryable: the same call may succeed later although nothing was changed. The `retryable` of an error decides where it differs: after a write that the service may have carried out it is false, and a command exits with 1 where the table says 75.',
    tableOf(['code', 'meaning', 'exit code', 'retryable', 'what to do'], rows),
    'A log line without a code has a stack: it is a defect. The exit codes of results that are not errors are in [commands](commands.md). The codes of log lines about sinks (`SINK_…`) are in [the log](log.md).',
    '## HTTP',
    'An answer that is not a success has `{"error":{"code":…,"message":…,"hint":…}}`. The codes by which a stream ends or is reset are in [the stream](stream.md).',
    tableOf(['code', 'status', 'meaning', 'what to do'], answers),
  ].join('\n\n')}\n`;
}
