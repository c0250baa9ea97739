import { ERROR_CODES, SEE_HINT } from '@catchword/base/errors';
import { HTTP_ERRORS } from '../../src/http/http-error.ts';
import { GENERATED, tableOf } from './reference.ts';

/* docs/errors.md: the tables of packages/base/src/errors.ts and src/http/http-error.ts. */

/** Names of settings as code, and paths of documents as links. */
function linked(text: string): string {
  const quoted = text.replace(/(?<!`)\b[A-Z]+(?:_[A-Z]+)+\b(?!`)/g, '`$&`');
  return quoted.replace(/docs\/([a-z-]+)\.md/g, '[$1]($1.md)');
}

export function errorsPage(): string {
  const rows = Object.entries(ERROR_CODES).map(([code, { meaning, exit, retryable, remedy }]) => {
    return [`\`${code}\``, linked(meaning), String(exit), retryable ? 'yes' : 'no', linked(remedy ?? SEE_HINT)];
  });
  const answers = Object.entries(HTTP_ERRORS).map(([code, [status, meaning, remedy]]) => {
    return [`\`${code}\``, String(status), meaning, linked(remedy)];
  });
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
