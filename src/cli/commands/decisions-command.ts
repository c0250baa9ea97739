import { Command } from 'commander';
import { DECISION } from '../../shown/shown-decision.ts';
import { jsonOf, shownLines } from '../../shown/shown-row.ts';
import type { CommandContext } from './shared/command-context.ts';
import { colours, wholeNumber } from './shared/output-format.ts';
import { mirrorCommand } from './shared/with-mirror.ts';

/** Lists decisions of operators, the newest first. */
export function decisionsCommand(context: CommandContext): Command {
  const command = new Command('decisions')
    .option('--limit <n>', 'list at most this many', wholeNumber('--limit', 1), 20)
    .option('--before <id>', 'list only those before this one', wholeNumber('--before', 1));
  return mirrorCommand(context, 'look', command, (store, _config, given: { limit: number; before?: number }) => {
    const nowMs = context.clock.now();
    const found = store.actions.list(given.limit, given).map((row) => ({ ...row, store, nowMs }));
    const lines = shownLines(colours(context), DECISION, found, ({ id }) => `decision ${id}`);
    return { json: found.map((one) => jsonOf(DECISION, one)), text: found.length === 0 ? 'no decision yet' : lines };
  });
}
