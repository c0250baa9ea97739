import { CatchwordError } from '../../errors.ts';
import { createLog, type Logger, type Tell } from '../../log.ts';
import { duration, time } from '../../report/text.ts';
import type { Store } from '../../store/store.ts';
import { forgetPause } from '../../sync/shared-pace.ts';
import type { CommandContext } from './context.ts';
import { isTerminal } from './format.ts';

/** A command does not wait for the end of a longer pause; milliseconds. */
const LONGEST_WAIT_MS = 3_600_000;

/**
 * The log of a command, readable if stderr is a terminal.
 * @param split writes everything but errors to stdout; for services, which print no data
 */
export function commandLog(context: CommandContext, level: string, split = false): Logger {
  return createLog(level, { readable: isTerminal(context.stderr), colour: !context.environment.NO_COLOR, split });
}

/** Prints notices for a person, on stderr. */
export function toPerson({ stderr }: Pick<CommandContext, 'stderr'>): Tell {
  const clearProgressBar = isTerminal(stderr) ? '\r\u001b[K' : '';
  return ({ message, fields: { reason, until } }) => {
    const end = typeof until === 'string' ? ` until ${time(until)}` : '';
    const why = typeof reason === 'string' ? `: ${reason}` : '';
    stderr.write(`${clearProgressBar}${message}${end}${why}\n`);
  };
}

/** @throws CatchwordError SOURCE_RATE_LIMITED if the source asked for a pause that is too long to wait for */
export function checkPause({ source }: Pick<Store, 'source'>, nowMs: number): void {
  const pause = source.pause(nowMs);
  const waitMs = pause === null ? 0 : pause.until - nowMs;
  if (pause === null || waitMs <= LONGEST_WAIT_MS) return;
  throw new CatchwordError('SOURCE_RATE_LIMITED', `the source asked for no request before ${time(pause.until)}`, {
    hint: `Retry in ${duration(waitMs)}, or ask at once with: npx catchword sync --now.`,
    retryAfterMs: waitMs,
  });
}

/** Ends the pause that the source asked for with `--now`; otherwise checks that it is short enough to wait for. */
export function observePause(context: CommandContext, mirror: Store, now: boolean | undefined): void {
  const nowMs = context.clock.now();
  if (now) forgetPause(mirror, nowMs, toPerson(context));
  else checkPause(mirror, nowMs);
}
