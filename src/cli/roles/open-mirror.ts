import type { Config } from '@catchword/settings/config';
import { lookAt } from '../../store/file/mirror-path.ts';
import { openStore, type Store } from '../../store/store.ts';

/** Opens an existing mirror while `work` runs. @param forReading also accepts one that this user cannot write */
export async function withMirror<T>(
  { db, dbMode: mode }: Config,
  forReading: boolean,
  work: (mirror: Store) => T | Promise<T>,
): Promise<T> {
  const store = openStore(db, { mustExist: true, forReading, mode });
  try {
    return await work(store);
  } finally {
    store.close();
  }
}

/** Opens the mirror for reading; null if there is none yet. */
export function openMirrorIfAny({ db, dbMode: mode }: Pick<Config, 'db' | 'dbMode'>): Store | null {
  return lookAt(db) === undefined ? null : openStore(db, { mustExist: true, forReading: true, mode });
}

/** Opens the mirror for reading; null if there is none yet; undefined if it cannot be opened, which `doctor` explains. */
export function openMirrorIfSound(config: Parameters<typeof openMirrorIfAny>[0]): Store | null | undefined {
  try {
    return openMirrorIfAny(config);
  } catch {
    return undefined;
  }
}

/** Opens the mirror for reading while `work` runs; null if there is none yet. */
export async function withMirrorIfAny<T>(config: Config, work: (mirror: Store | null) => T | Promise<T>): Promise<T> {
  const store = openMirrorIfAny(config);
  try {
    return await work(store);
  } finally {
    store?.close();
  }
}
