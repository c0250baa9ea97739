import { join } from 'node:path';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { onTestFinished } from 'vitest';
import { openStore, type Store, type StoreOptions } from '../../src/store/store.ts';

/** A path for a mirror, in a directory of the test. */
export function mirrorPath(): string {
  return join(temporaryDirectory(), 'catalog.db');
}

/** Opens a mirror until the test ends. */
export function openedStore(db = mirrorPath(), options?: StoreOptions): Store {
  const store = openStore(db, options);
  onTestFinished(() => store.close());
  return store;
}
