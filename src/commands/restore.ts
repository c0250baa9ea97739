import { Command } from 'commander';
import { iso } from '../iso-time.ts';
import { sinkConfig } from '../relay/sink-config.ts';
import { moment, plural } from '../report/text.ts';
import { type Restored, restore } from '../store/restore.ts';
import type { CommandContext } from './shared/context.ts';
import { copyWithProgress } from './shared/copying.ts';
import { type JsonOption, print } from './shared/format.ts';
import { loadSettings } from './shared/settings.ts';

function restoredLines(db: string, file: string, { products, watermark, kept, sinks }: Restored): string[] {
  const upTo = watermark === null ? 'never complete' : `complete up to ${moment(watermark)} UTC`;
  const halted = sinks.filter(({ state }) => state !== 'running');
  return [
    `${db} is the backup ${file}: ${plural(products, 'product')}, ${upTo}`,
    ...(kept === null ? [] : [`the former mirror is kept as ${kept}: delete it when you do not need it any more`]),
    ...(sinks.length === 0 ? [] : [`filled again when catchword runs: ${sinks.map(({ name }) => name).join(', ')}`]),
    ...halted.map(({ name, state }) => `${name} is ${state}; resume it with: npx catchword sink resume ${name}`),
    'next: npx catchword sync (it reads every product), then start the daemon',
  ];
}

export function restoreCommand(context: CommandContext): Command {
  return new Command('restore')
    .argument('<file>', 'a backup')
    .option('--json', 'print one JSON document')
    .action(async (file: string, options: JsonOption) => {
      const config = loadSettings(context, 'nothing');
      const { signal } = context;
      const sinks = config.sinks.map(sinkConfig);
      const restored = await restore(config.db, file, { copy: copyWithProgress(context), signal, sinks });
      const { incarnation, products, lastSeq, watermark, kept } = restored;
      print(context, options, {
        json: {
          mirror: config.db,
          incarnation,
          products,
          last_seq: lastSeq,
          watermark: iso(watermark),
          kept,
          sinks: restored.sinks.map(({ name, state }) => ({ name, state })),
        },
        text: restoredLines(config.db, file, restored),
      });
    });
}
