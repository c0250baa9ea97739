import { toAnswer } from '../../base/errors.ts';
import { STOP_SIGNALS } from '../../base/lifecycle.ts';
import { copyMirror } from './copy-mirror.ts';

/* The program of copy-subprocess.ts, which copies a mirror for another process. Its arguments are the two paths. */

const [, , from = '', to = ''] = process.argv;
// A terminal sends these to every process. The process that asks ends this one.
for (const name of STOP_SIGNALS) process.on(name, () => {});
process.send?.(
  toAnswer(() => copyMirror(from, to)),
  () => process.disconnect(),
);
