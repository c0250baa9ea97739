import cron, { type ScheduledTask } from 'node-cron';
import type { RunKind } from '../catalog/run.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Service } from '../service.ts';

export interface ScheduleOptions {
  /** Cron expressions of five or six fields, or `off`. */
  readonly fullCron: string;
  readonly deltaCron: string;
  readonly timezone: string;
  readonly log: Logger;
  /**
   * Called at each moment of a schedule. `tick` names the moment; it is the same on every machine, so that two
   * schedulers start one run.
   */
  readonly onTick: (kind: RunKind, tick: string) => Promise<void>;
}

/** @throws CatchwordError CONFIG_INVALID naming the variable */
export function checkCron(variable: string, expression: string): void {
  if (expression === 'off') return;
  const { valid, errors } = cron.validateDetailed(expression);
  if (valid) return;
  throw new CatchwordError('CONFIG_INVALID', `${variable}: ${JSON.stringify(expression)} is no cron expression`, {
    hint: `${errors[0]?.message ?? 'Five fields are needed'}. An example: 0 2 * * * (every day at two); or off.`,
  });
}

/** Starts both schedules. */
export function startScheduler({ fullCron, deltaCron, timezone, log, onTick }: ScheduleOptions): Service {
  checkCron('CATCHWORD_FULL_CRON', fullCron);
  checkCron('CATCHWORD_DELTA_CRON', deltaCron);
  const tasks: ScheduledTask[] = [];
  for (const [kind, expression] of [
    ['full', fullCron],
    ['delta', deltaCron],
  ] as const) {
    if (expression === 'off') continue;
    const task = cron.schedule(
      expression,
      async ({ date }) => {
        try {
          await onTick(kind, `${kind}@${date.toISOString()}`);
        } catch (error) {
          log.error({ kind, reason: messageOf(error) }, 'a scheduled run could not be asked for');
        }
      },
      { timezone, noOverlap: true, name: kind, suppressMissedWarning: true },
    );
    task.on('execution:missed', ({ date }) => log.warn({ kind, due: date }, 'a scheduled moment was missed'));
    log.info({ kind, cron: expression, timezone, next: task.getNextRun() }, 'scheduled');
    tasks.push(task);
  }
  return {
    name: 'scheduler',
    stop: async () => {
      for (const task of tasks) await task.destroy();
    },
  };
}
