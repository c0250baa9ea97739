import { resolve } from 'node:path';
import { iso } from '@catchword/base/iso-time';
import { sourceAddress } from '@catchword/catalog/source-identity';
import type { Config } from '@catchword/settings/config';
import { Command } from 'commander';
import { sinkConfigs } from '../../relay/sink-config.ts';
import { moment, plural, size } from '../../report/text.ts';
import { backUp } from '../../store/file/back-up.ts';
import { type Restored, restore } from '../../store/file/restore-backup.ts';
import { loadSettings } from './shared/checked-settings.ts';
import type { CommandContext } from './shared/command-context.ts';
import { type JsonOption, print } from './shared/output-format.ts';
import { copyWithProgress } from './shared/show-progress.ts';

const upTo = (watermark: number | null): string =>
  watermark === null ? 'never complete' : `complete up to ${moment(watermark)} UTC`;

function backupCommand(context: CommandContext): Command {
  return new Command('backup')
    .argument('<file>', 'the new file, which must not exist')
    .option('--json', 'print one JSON document')
    .action(async (file: string, options: JsonOption) => {
      const { db } = loadSettings(context, 'nothing');
      const how = { copy: copyWithProgress(context), signal: context.signal };
      const { bytes, products, lastSeq, watermark } = await backUp(db, file, how);
      print(context, options, {
        json: { file: resolve(file), bytes, products, last_seq: lastSeq, watermark: iso(watermark) },
        text: `${file}: ${plural(products, 'product')}, ${size(bytes)}, sound, ${upTo(watermark)}`,
      });
    });
}

/** Says what to do after a restore; a backup of another service may be the wrong one. */
function nextLine({ baseUrl }: Config, { address, kept }: Restored): string {
  if (baseUrl === undefined || address === null || address === sourceAddress(baseUrl)) {
    return 'next: npx catchword sync (it reads every product), then start the daemon';
  }
  const other = kept === null ? 'it is the wrong backup' : 'put the former mirror back';
  return `it is a mirror of ${address}, and CATCHWORD_BASE_URL is ${baseUrl}: if that service moved, run npx catchword adopt; else ${other}`;
}

function restoredLines(config: Config, file: string, restored: Restored): string[] {
  const { products, watermark, kept, sinks } = restored;
  const halted = sinks.filter(({ state }) => state !== 'running');
  return [
    `${config.db} is the backup ${file}: ${plural(products, 'product')}, ${upTo(watermark)}`,
    ...(kept === null ? [] : [`the former mirror is kept as ${kept}: delete it when you do not need it any more`]),
    ...(sinks.length === 0 ? [] : [`filled again when catchword runs: ${sinks.map(({ name }) => name).join(', ')}`]),
    ...halted.map(({ name, state }) => `${name} is ${state}; resume it with: npx catchword sink resume ${name}`),
    nextLine(config, restored),
  ];
}

function restoreCommand(context: CommandContext): Command {
  return new Command('restore')
    .argument('<file>', 'a backup')
    .option('--json', 'print one JSON document')
    .action(async (file: string, options: JsonOption) => {
      const config = loadSettings(context, 'nothing');
      const { signal } = context;
      const sinks = sinkConfigs(config.sinks).filter(({ identity }) => identity !== '');
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
        text: restoredLines(config, file, restored),
      });
    });
}

export function backupCommands(context: CommandContext): Command[] {
  return [backupCommand(context), restoreCommand(context)];
}
