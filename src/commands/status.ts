import { Command } from 'commander';
import { loadConfig } from '../config.ts';
import { statusOf } from '../store/status.ts';
import { openStore, type Store } from '../store/store.ts';
import type { CommandContext } from './context.ts';
import { colours, count, duration, moment, printJson, printLine, size } from './format.ts';

/** Opens an existing mirror for the time of `work`. */
export function withMirror<T>(context: CommandContext, work: (store: Store) => T): T {
  const store = openStore(loadConfig(context.environment).db, { mustExist: true });
  try {
    return work(store);
  } finally {
    store.close();
  }
}

export function statusCommand(context: CommandContext): Command {
  return new Command('status')
    .description('where things stand: the mirror, how fresh it is, the last run')
    .option('--json', 'print one JSON document')
    .action((options: { json?: boolean }) =>
      withMirror(context, (store) => {
        const now = context.clock.now();
        const status = statusOf(store, now);
        if (options.json) {
          printJson(context, status);
          return;
        }
        const c = colours(context, context.stdout);
        const watermark = store.watermark();
        const [last] = store.runs.list(1);
        const fresh =
          watermark === null ? c.yellow('never filled') : `${moment(watermark)} UTC, ${duration(now - watermark)} ago`;
        printLine(context, `mirror     ${status.mirror} (${size(status.bytes)})`);
        printLine(context, `products   ${count(status.products)}`);
        printLine(context, `changes    ${count(status.last_seq)}`);
        printLine(context, `complete   up to ${fresh}`);
        if (status.blocked_until !== null)
          printLine(context, `source     asks for no request before ${moment(store.blockedUntil())} UTC`);
        if (last !== undefined) {
          printLine(
            context,
            `last run   ${last.id}, ${last.kind}, ${last.state}, ${moment(last.startedAt)} UTC, ${count(last.pages)} pages`,
          );
        }
        for (const id of status.held) {
          printLine(context, c.yellow(`held       run ${id} waits for a decision: npx catchword run ${id}`));
        }
        if (status.running !== null)
          printLine(context, `running in process ${status.running.pid} on ${status.running.host}`);
      }),
    );
}
