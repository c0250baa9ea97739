import { createRequire } from 'node:module';
import { CatchwordError, messageOf } from '../../base/errors.ts';
import { nextDue } from './due.ts';

/** Loaded when it is needed: few commands start a schedule, and few users set one. */
const load = createRequire(import.meta.url);

/** @throws CatchwordError CONFIG_INVALID naming the variable */
export function checkCron(variable: string, expression: string): void {
  if (expression === 'off') return;
  const { validateDetailed } = load('node-cron') as typeof import('node-cron');
  const { valid, errors } = validateDetailed(expression);
  let reason = valid ? undefined : (errors[0]?.message ?? 'Use five fields');
  try {
    // Checked with both libraries, because each accepts forms that the other does not.
    if (valid && nextDue(expression, 'UTC', 0) === null) reason = 'It never fires';
  } catch (error) {
    reason = messageOf(error);
  }
  if (reason === undefined) return;
  const hint = `${reason}. Example: 0 2 * * * (every day at 02:00); or off.`;
  const what = `${variable}: ${JSON.stringify(expression)} is not a valid cron expression`;
  throw new CatchwordError('CONFIG_INVALID', what, { hint });
}
