import { resolve } from 'node:path';
import { Command } from 'commander';
import { iso } from '../iso-time.ts';
import { moment, plural, size } from '../report/text.ts';
import { backUp } from '../store/back-up.ts';
import type { CommandContext } from './shared/context.ts';
import { copyWithProgress } from './shared/copying.ts';
import { type JsonOption, print } from './shared/format.ts';
import { loadSettings } from './shared/settings.ts';

export function backupCommand(context: CommandContext): Command {
  return new Command('backup')
    .argument('<file>', 'the new file, which must not exist')
    .option('--json', 'print one JSON document')
    .action(async (file: string, options: JsonOption) => {
      const { db } = loadSettings(context, 'nothing');
      const { signal } = context;
      const { bytes, products, lastSeq, watermark } = await backUp(db, file, {
        copy: copyWithProgress(context),
        signal,
      });
      const upTo = watermark === null ? 'never complete' : `complete up to ${moment(watermark)} UTC`;
      print(context, options, {
        json: { file: resolve(file), bytes, products, last_seq: lastSeq, watermark: iso(watermark) },
        text: `${file}: ${plural(products, 'product')}, ${size(bytes)}, sound, ${upTo}`,
      });
    });
}
