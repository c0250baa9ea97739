import type { Clock } from '../clock.ts';
import { createDirectory, type ReaderTokens } from './accounts/api-keys.ts';
import { createIngestions, type Ingestions } from './assets/ingestion.ts';
import { createAssets } from './assets/store.ts';
import { createCatalog } from './catalog/catalog.ts';
import { itemRenderer } from './catalog/item.ts';
import { EVERY_MEMBER } from './catalog/item-details.ts';
import { createNumbering } from './catalog/product-numbers.ts';
import { accountControls } from './control/account-controls.ts';
import { type Control, mutation } from './control/control.ts';
import type { TokenState } from './http/authentication.ts';
import type { Operation } from './http/operation.ts';
import { createRouter } from './http/router.ts';
import type { Change, RecordChange } from './journal/change.ts';
import type { Timeline } from './journal/timeline.ts';
import { createKeys, type Keys } from './keys.ts';
import { assetOperations } from './operations/assets.ts';
import { bookOperations } from './operations/books.ts';
import { credentialOperations } from './operations/credentials.ts';
import { licenseOperations } from './operations/licenses.ts';
import { packageOperations } from './operations/packages.ts';
import { productOperations, type Shelf } from './operations/products.ts';
import { createTitles } from './operations/titles.ts';
import { userOperations } from './operations/users.ts';
import type { SandboxOptions } from './options.ts';

/** All that a sandbox holds, and the operations on it. Nothing here waits, but for the calls after an ingestion. */
export interface Holdings {
  readonly shelf: Shelf;
  readonly operations: readonly Operation[];
  readonly ingestions: Ingestions;
  readonly keys: Keys;
  readonly tokenState: (token: string) => TokenState;
  readonly readerTokens: () => ReaderTokens;
  /** What changes it from outside the interface, by path. */
  readonly controls: ReadonlyMap<string, Control>;
  /** Does a change again, as the journal holds it. Throws what it threw the first time. */
  repeat(change: Change): void;
}

export interface HoldingsContext {
  readonly clock: Clock;
  readonly time: Timeline;
  readonly record: RecordChange;
  readonly signal: AbortSignal;
}

export function createHoldings(options: SandboxOptions, { clock, time, record, signal }: HoldingsContext): Holdings {
  const { seed, details, maxPerPage, allowPrivateCallbacks } = options;
  const catalog = createCatalog({ ...options, clock: time });
  const numbering = createNumbering(seed);
  const renderFull = itemRenderer(seed, numbering, EVERY_MEMBER);
  const assets = createAssets({ ...options, catalog, numbering, time, renderFull });
  const shelf: Shelf = { catalog, numbering, assets, seed, details, maxPerPage };
  const ingestions = createIngestions({
    ...{ clock, signal, retryMs: options.callbackRetryMs, allowPrivate: allowPrivateCallbacks },
    done: (call) => record({ kind: 'called', call }, () => {}),
  });
  let privateCallbacks = allowPrivateCallbacks;
  const mayCall = () => privateCallbacks;
  const library = { assets, catalog, ingestions, time, allowPrivateCallbacks: mayCall };
  const titleOf = createTitles(shelf);
  const directory = createDirectory(options, numbering, titleOf);

  const operations: readonly Operation[] = [
    ...productOperations(shelf),
    ...assetOperations(library),
    ...bookOperations(library),
    ...licenseOperations(directory, time),
    ...credentialOperations(directory),
    ...userOperations(directory),
    ...packageOperations({ seed, time, isProduct: (vbid) => titleOf(vbid) !== null }),
  ];
  const keys = createKeys(options);
  const controls = new Map<string, Control>([
    ['/_sandbox/mutate', mutation(catalog)],
    ['/_sandbox/key', keys.renew],
    ...accountControls(directory, options),
  ]);
  const route = createRouter(operations);

  return {
    shelf,
    operations,
    ingestions,
    keys,
    tokenState: (token) => directory.tokenState(token),
    readerTokens: () => directory.readerTokens(),
    controls,
    repeat: (change) => {
      if (change.kind === 'called') return ingestions.forget(change.call);
      if (change.kind === 'control') return void controls.get(change.path)?.(change.body);
      const { method, path, query, apiKey, accessToken, body } = change;
      const found = route(method, path);
      if ('status' in found) return;
      const params = new URLSearchParams(query);
      privateCallbacks = change.privateCallbacks;
      try {
        found.operation.operate({ values: found.values, params, body, apiKey, accessToken, fault: null });
      } finally {
        privateCallbacks = allowPrivateCallbacks;
      }
    },
  };
}
