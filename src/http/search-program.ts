import { systemClock } from '@catchword/base/clock';
import { toAnswer } from '@catchword/base/errors';
import { refuseDebugger, STOP_SIGNALS } from '@catchword/base/lifecycle';
import { openStore } from '../store/store.ts';
import { createReadSteps, type ReadSteps } from './read-steps.ts';

/*
 * The program of the process that searches and judges for another one: see search-subprocess.ts. Its arguments are the path of
 * the mirror, and the `source` of events if the mirror has not stored its own.
 */

/** The name of a step, and its arguments. */
export type StepRequest = readonly [name: keyof ReadSteps, ...given: unknown[]];

// A terminal or a service manager sends these to every process. This one ends with its channel to the process that asks,
// which is all that keeps it alive.
for (const name of STOP_SIGNALS) process.on(name, () => {});
refuseDebugger();
const [, , path = '', source = ''] = process.argv;

/** Sends what `work` makes, null when the process is ready. */
async function answer(work: () => unknown): Promise<void> {
  const made = await Promise.resolve()
    .then(work)
    .then(
      (made) => toAnswer(() => made),
      (error) =>
        toAnswer(() => {
          throw error;
        }),
    );
  process.send?.(made);
}

void answer(() => {
  const steps = createReadSteps(openStore(path, { mustExist: true, readOnly: true }), source, systemClock);
  process.on('message', ([name, ...given]: StepRequest) => {
    void answer(() => (steps[name] as (...given: unknown[]) => unknown)(...given));
  });
  return null;
});
