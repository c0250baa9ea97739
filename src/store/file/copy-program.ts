import { CatchwordError, type ErrorRecord, messageOf, toErrorRecord } from '../../base/errors.ts';
import { STOP_SIGNALS } from '../../base/lifecycle.ts';
import { type Copied, copyMirror } from './copy-mirror.ts';

/*
 * The program of the process that copies a mirror for another one: see copy-subprocess.ts. Its arguments are the two paths.
 */

/** What is in the copy; or an error, which is only a message if it is a defect. */
export type CopyAnswer = { readonly copied: Copied } | { readonly error: ErrorRecord | string };

function answer(): CopyAnswer {
  const [, , from = '', to = ''] = process.argv;
  try {
    return { copied: copyMirror(from, to) };
  } catch (error) {
    return { error: error instanceof CatchwordError ? toErrorRecord(error) : messageOf(error) };
  }
}

// A terminal sends these to every process. The process that asks ends this one.
for (const name of STOP_SIGNALS) process.on(name, () => {});
process.send?.(answer(), () => process.disconnect());
