import { createDirectory } from './accounts/directory.ts';
import { createAssets } from './assets/asset-store.ts';
import { createIngestions } from './assets/ingestion.ts';
import { createCatalog } from './catalog/changing-catalog.ts';
import { createNumbering } from './catalog/product-numbers.ts';
import type { RecordChange, Timeline } from './journal/journal.ts';
import type { SandboxOptions } from './options.ts';

/** Creates everything that a sandbox holds. Operations and controls take the parts that they need. */
export function createStores(options: SandboxOptions, time: Timeline, record: RecordChange, signal: AbortSignal) {
  const catalog = createCatalog(options, time);
  const numbering = createNumbering(options.seed);
  const assets = createAssets(options, catalog, numbering, time);
  const ingestions = createIngestions(options, signal, (call) => record({ kind: 'called', call }, () => {}));
  const directory = createDirectory(options, numbering, assets.titleOf);
  return { options, time, catalog, numbering, assets, ingestions, directory };
}

export type Stores = ReturnType<typeof createStores>;
