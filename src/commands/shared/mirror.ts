import type { Config } from '../../config.ts';
import { openStore, type Store } from '../../store/store.ts';
import type { CommandContext } from './context.ts';
import { loadSettings } from './settings.ts';

type Work<T> = (store: Store, config: Config) => T | Promise<T>;

/** Opens an existing mirror while `work` runs. @param forReading also accepts one that this user cannot write */
export async function withMirror<T>(config: Config, forReading: boolean, work: Work<T>): Promise<T> {
  const store = openStore(config.db, { mustExist: true, forReading, mode: config.dbMode });
  try {
    return await work(store, config);
  } finally {
    store.close();
  }
}

/** Loads the settings and opens the mirror for a command that only reads it. */
export async function readMirror<T>(context: CommandContext, work: Work<T>): Promise<T> {
  return await withMirror(loadSettings(context, 'nothing'), true, work);
}

/** Loads the settings and opens the mirror for a command that writes it. */
export async function writeMirror<T>(context: CommandContext, work: Work<T>): Promise<T> {
  return await withMirror(loadSettings(context, 'nothing'), false, work);
}
