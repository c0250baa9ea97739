import { Command } from 'commander';
import { effectiveSettings } from '../../operate/effective-settings.ts';
import { jsonOf, shownLines } from '../../shown/shown-row.ts';
import { SETTING } from '../../shown/shown-setting.ts';
import { loadSettings } from './shared/checked-settings.ts';
import type { CommandContext } from './shared/command-context.ts';
import { colours, type JsonOption, print } from './shared/output-format.ts';

export function settingsCommand(context: CommandContext): Command {
  return new Command('settings').option('--json', 'print one JSON document').action((options: JsonOption) => {
    const settings = effectiveSettings(context);
    const text = shownLines(colours(context), SETTING, settings, ({ name }) => name).join('\n');
    print(context, options, { json: settings.map((one) => jsonOf(SETTING, one)), text });
    // Reports unknown variables and settings that are wrong.
    loadSettings(context, 'nothing', true);
  });
}
