import type { Config } from '../../config.ts';
import { withMirror } from '../../roles/open-mirror.ts';
import type { Store } from '../../store/store.ts';
import type { CommandContext } from './context.ts';
import { type JsonOption, print, type Result } from './format.ts';
import { loadSettings } from './settings.ts';

/** Loads the settings, opens the mirror, and prints the result of `work`. */
export async function onMirror(
  context: CommandContext,
  access: 'read' | 'write',
  options: JsonOption,
  work: (store: Store, config: Config) => Result | Promise<Result>,
): Promise<void> {
  const config = loadSettings(context, 'nothing');
  print(context, options, await withMirror(config, access === 'read', (mirror) => work(mirror, config)));
}
