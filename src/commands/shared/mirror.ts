import type { Config } from '../../config.ts';
import { withMirror } from '../../roles/open-mirror.ts';
import type { Store } from '../../store/store.ts';
import type { CommandContext } from './context.ts';
import { loadSettings } from './settings.ts';

type Work<T> = (store: Store, config: Config) => T | Promise<T>;

/** Loads the settings and opens the mirror for a command that only reads it. */
export async function readMirror<T>(context: CommandContext, work: Work<T>): Promise<T> {
  const config = loadSettings(context, 'nothing');
  return await withMirror(config, true, (mirror) => work(mirror, config));
}

/** Loads the settings and opens the mirror for a command that writes it. */
export async function writeMirror<T>(context: CommandContext, work: Work<T>): Promise<T> {
  const config = loadSettings(context, 'nothing');
  return await withMirror(config, false, (mirror) => work(mirror, config));
}
