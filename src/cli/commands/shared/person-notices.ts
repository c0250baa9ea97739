import { hostname, userInfo } from 'node:os';
import { createLog, type Logger, type LogSettings, type Tell } from '@catchword/base/log';
import { checkPause } from '../../../operate/decisions/check-pause.ts';
import { time } from '../../../report/text.ts';
import type { Store } from '../../../store/store.ts';
import { forgetPause } from '../../../sync/shared-pace.ts';
import type { CommandContext } from './command-context.ts';
import { isTerminal } from './output-format.ts';

/** Readable on a terminal. `split` writes all but errors to stdout, for services, which print no data. */
export function logSettings(context: CommandContext, level: string, split = false): LogSettings {
  return { level, readable: isTerminal(context.stderr), colour: !context.environment.NO_COLOR, split };
}

export function commandLog(context: CommandContext, level: string): Logger {
  return createLog(level, logSettings(context, level));
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

/** Ends the pause that the source asked for with `--now`; otherwise checks that it is short enough to wait for. */
export function observePause(context: CommandContext, mirror: Store, now: boolean | undefined): void {
  const nowMs = context.clock.now();
  if (now) forgetPause(mirror, nowMs, toPerson(context));
  else checkPause(mirror, nowMs);
}

/** The user who runs a command, as decisions name them. */
export function commandUser(): string {
  let user: string;
  try {
    user = userInfo().username;
  } catch {
    // In a container, a user id may have no name.
    user = `uid ${process.getuid?.() ?? 'unknown'}`;
  }
  return `command, ${user}@${hostname()}`;
}
