import { resolve } from 'node:path';
import { Command } from 'commander';
import { iso } from '../../base/iso-time.ts';
import { moment, plural, size } from '../../report/text.ts';
import { backUp } from '../../store/file/back-up.ts';
import { loadSettings } from './shared/checked-settings.ts';
import type { CommandContext } from './shared/command-context.ts';
import { type JsonOption, print } from './shared/output-format.ts';
import { copyWithProgress } from './shared/show-progress.ts';

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
