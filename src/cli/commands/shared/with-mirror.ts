import { Command } from 'commander';
import type { Config } from '../../../settings/config.ts';
import type { Store } from '../../../store/store.ts';
import { withMirror } from '../../roles/open-mirror.ts';
import { loadSettings } from './checked-settings.ts';
import type { CommandContext } from './command-context.ts';
import { type JsonOption, print, type Result, wholeNumber } from './output-format.ts';

type Access = 'read' | 'write';

/** Loads the settings, and opens the mirror for reading. */
export async function readMirror(
  context: CommandContext,
  work: (store: Store, config: Config) => void | Promise<void>,
): Promise<void> {
  const config = loadSettings(context, 'nothing');
  await withMirror(config, true, (store) => work(store, config));
}

/** Loads the settings, opens the mirror, and prints the result of `work`. */
export async function onMirror(
  context: CommandContext,
  access: Access,
  options: JsonOption,
  work: (store: Store, config: Config) => Result | Promise<Result>,
): Promise<void> {
  const config = loadSettings(context, 'nothing');
  print(context, options, await withMirror(config, access === 'read', (mirror) => work(mirror, config)));
}

/** Makes a command that prints what `work` returns for one run. */
export function runCommand(
  context: CommandContext,
  name: string,
  access: Access,
  work: (store: Store, runId: number, config: Config) => Result | Promise<Result>,
): Command {
  return new Command(name)
    .argument('<run>', 'number of the run', wholeNumber('<run>', 1))
    .option('--json', 'print one JSON document')
    .action((runId: number, options: JsonOption) =>
      onMirror(context, access, options, (store, config) => work(store, runId, config)),
    );
}
