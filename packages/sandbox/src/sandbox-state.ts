import { createControls } from './control/controls.ts';
import { createRouter } from './http/router.ts';
import { type Change, createTimeline, openJournal, type RecordChange } from './journal/journal.ts';
import { assetOperations } from './operations/assets.ts';
import { credentialOperation } from './operations/credentials.ts';
import { licenseOperation } from './operations/licenses.ts';
import { packageOperations } from './operations/packages.ts';
import { productOperations } from './operations/products.ts';
import { userOperations } from './operations/users.ts';
import type { SandboxOptions } from './options.ts';
import { createStores } from './sandbox-stores.ts';

function createState(...given: Parameters<typeof createStores>) {
  const stores = createStores(...given);
  const operations = [
    ...productOperations(stores),
    ...assetOperations(stores),
    licenseOperation(stores),
    credentialOperation(stores),
    ...userOperations(stores),
    ...packageOperations(stores),
  ];
  return { ...stores, operations, controls: createControls(stores), route: createRouter(operations) };
}

function repeat({ ingestions, controls, route }: ReturnType<typeof createState>, change: Change): void {
  if (change.kind === 'called') ingestions.forget(change.call);
  if (change.kind === 'control') controls.get(change.path)?.(change.body);
  if (change.kind !== 'request') return;
  const { method, path, query, apiKey, accessToken, body } = change;
  const found = route(method, path);
  if ('status' in found) return;
  const params = new URLSearchParams(query);
  found.operation.run({ values: found.values, params, body: Buffer.from(body), apiKey, accessToken, fault: null });
}

/**
 * Creates the state of a sandbox and the operations on it, and replays its journal if it has one. Changes go through
 * `record`, until `close`. Nothing here waits, except callbacks.
 * @throws CatchwordError CONFIG_INVALID for a journal that cannot be used
 */
export function openState(options: SandboxOptions, signal: AbortSignal) {
  const { db, clock } = options;
  const given = { ...options, at: clock.now() };
  const journal = db === null ? null : openJournal(db, given);
  const time = createTimeline(clock, journal?.beginning.at ?? given.at);
  const record: RecordChange = (change, act) => {
    const at = time.now();
    const timed = () => time.during(at, act);
    return journal === null ? timed() : journal.record({ at, ...change }, timed);
  };
  try {
    const state = createState(options, time, record, signal);
    for (const entry of journal?.entries ?? []) {
      try {
        time.during(entry.at, () => repeat(state, entry));
      } catch {
        // A change that fails now failed the first time as well: the process was killed before it removed the entry.
      }
    }
    time.run();
    return { ...state, record, close: () => journal?.close() };
  } catch (error) {
    journal?.close();
    throw error;
  }
}

export type State = ReturnType<typeof openState>;
