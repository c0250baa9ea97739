import { createApiKeys } from './accounts/api-keys.ts';
import { createDirectory } from './accounts/directory.ts';
import type { Title } from './accounts/grants.ts';
import { createIngestions } from './assets/ingestion.ts';
import { publisherOf } from './assets/response.ts';
import { type Assets, createAssets } from './assets/store.ts';
import { createCatalog } from './catalog/catalog.ts';
import { isIsbn } from './catalog/isbn.ts';
import { EVERY_MEMBER, itemRenderer } from './catalog/item.ts';
import { createNumbering } from './catalog/product-numbers.ts';
import { accountControls } from './control/account-controls.ts';
import { type Control, keyControl, mutateControl } from './control/controls.ts';
import type { Operation } from './http/operation.ts';
import { createRouter } from './http/router.ts';
import type { Change, RecordChange } from './journal/change.ts';
import type { Timeline } from './journal/timeline.ts';
import { assetOperations } from './operations/assets.ts';
import { credentialOperations } from './operations/credentials.ts';
import { licenseOperations } from './operations/licenses.ts';
import { packageOperations } from './operations/packages.ts';
import { productOperations, type Shelf } from './operations/products.ts';
import { userOperations } from './operations/users.ts';
import type { SandboxOptions } from './options.ts';

function titleOf(assets: Assets, vbid: string): Title | null {
  const asset = assets.find(vbid);
  if (asset === null) return null;
  const { title = '', kind = 'book', imprint_id: imprint } = assets.fieldsOf(asset);
  const publisher = imprint === undefined ? '' : publisherOf(imprint);
  return { name: title, publisher, kind, isbn: isIsbn(vbid) ? vbid : '' };
}

/** Creates the state of a sandbox, and the operations on it. Nothing here waits, except callbacks. */
export function createState(options: SandboxOptions, time: Timeline, record: RecordChange, signal: AbortSignal) {
  const { seed, details, maxPerPage, allowPrivateCallbacks, clock, callbackRetryMs } = options;
  const catalog = createCatalog({ ...options, clock: time });
  const numbering = createNumbering(seed);
  const renderFull = itemRenderer(seed, numbering, EVERY_MEMBER);
  const assets = createAssets({ ...options, catalog, numbering, time, renderFull });
  const shelf: Shelf = { catalog, numbering, assets, seed, details, maxPerPage };
  const ingestions = createIngestions({
    clock,
    signal,
    retryMs: callbackRetryMs,
    allowPrivate: allowPrivateCallbacks,
    done: (call) => record({ kind: 'called', call }, () => {}),
  });
  let replaying = true;
  // What the journal holds was accepted with the options of that time.
  const library = {
    assets,
    catalog,
    ingestions,
    time,
    allowPrivateCallbacks: () => allowPrivateCallbacks || replaying,
  };
  const directory = createDirectory(options, numbering, (vbid) => titleOf(assets, vbid));
  const operations: readonly Operation[] = [
    ...productOperations(shelf),
    ...assetOperations(library),
    ...licenseOperations(directory, time),
    ...credentialOperations(directory),
    ...userOperations(directory),
    ...packageOperations({ seed, time, isProduct: (vbid) => assets.find(vbid) !== null }),
  ];
  const keys = createApiKeys(options);
  const controls = new Map<string, Control>([
    ['/_sandbox/mutate', mutateControl(catalog)],
    ['/_sandbox/key', keyControl(keys)],
    ...accountControls(directory),
  ]);
  const route = createRouter(operations);

  return {
    shelf,
    operations,
    keys,
    directory,
    /** Controls that change the state, by path. */
    controls,
    /** Makes a change of the journal again. Before `start`. */
    repeat: (change: Change): void => {
      if (change.kind === 'called') ingestions.forget(change.call);
      if (change.kind === 'control') controls.get(change.path)?.(change.body);
      if (change.kind !== 'request') return;
      const { method, path, query, apiKey, accessToken, body } = change;
      const found = route(method, path);
      if ('status' in found) return;
      const params = new URLSearchParams(query);
      found.operation.run({ values: found.values, params, body: Buffer.from(body), apiKey, accessToken, fault: null });
    },
    /** Ends the replay and starts to make callbacks. */
    start: () => {
      replaying = false;
      ingestions.start();
    },
    /** Resolves when no callback is waiting or under way. */
    settled: () => ingestions.settled(),
  };
}
