import { Command } from 'commander';
import { sinkStatuses } from '../report/sink.ts';
import { statusOf } from '../report/status.ts';
import { statusLines } from '../report/status-text.ts';
import { plansOf } from '../schedule/due.ts';
import type { CommandContext } from './shared/context.ts';
import { colours, print } from './shared/format.ts';
import { readMirror } from './shared/mirror.ts';

export function statusCommand(context: CommandContext): Command {
  return new Command('status').option('--json', 'print one JSON document').action((options: { json?: boolean }) =>
    readMirror(context, (store, config) =>
      store.read(() => {
        const nowMs = context.clock.now();
        const status = statusOf(store, nowMs, plansOf(config, nowMs));
        const sinks = sinkStatuses(store, config.sinks, nowMs);
        const lines = statusLines(colours(context, context.stdout), store, status, sinks, nowMs);
        print(context, options, { ...status, sinks }, lines);
      }),
    ),
  );
}
