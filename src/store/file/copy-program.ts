import { toAnswer } from '@catchword/base/errors';
import { refuseDebugger, STOP_SIGNALS } from '@catchword/base/lifecycle';
import { copyMirror } from './copy-mirror.ts';
import { isSound } from './inode-check.ts';

/* The program of copy-subprocess.ts: copies a mirror to a second path, or checks the content of a mirror. */

const [, , from = '', to] = process.argv;
// A terminal sends these to every process. The process that asks ends this one.
for (const name of STOP_SIGNALS) process.on(name, () => {});
refuseDebugger();
process.send?.(
  toAnswer(() => (to === undefined ? isSound(from) : copyMirror(from, to))),
  () => process.disconnect(),
);
