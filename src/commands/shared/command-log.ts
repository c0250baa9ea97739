import { createLog, type Logger } from '../../log.ts';
import type { CommandContext } from './context.ts';
import { isTerminal } from './format.ts';

/**
 * The log of a command: for a person where stderr is a terminal.
 * @param split what is not an error goes to stdout; for services, which print no data
 */
export function commandLog(context: CommandContext, level: string, split = false): Logger {
  return createLog(level, { readable: isTerminal(context.stderr), colour: !context.environment.NO_COLOR, split });
}
