import { objectMembers } from '@catchword/catalog/json-text';
import { selectionText } from '@catchword/catalog/source-identity';
import { execute, query } from '@catchword/testing/sqlite';
import { expect } from 'vitest';
import { createHistory } from '../../src/store/history/history.ts';
import { openStore } from '../../src/store/store.ts';

/** What a run reads with the default settings. */
export const SELECTION = selectionText({ includeDetails: [], currency: [] });

/** The default settings of a test. */
export function settingsFor(url: string, db: string, more: Record<string, string> = {}): Record<string, string> {
  return {
    CATCHWORD_BASE_URL: url,
    CATCHWORD_API_KEY: 'SANDBOXKEY',
    CATCHWORD_ACCESS_TOKEN: 'sandboxtoken',
    CATCHWORD_RATE_LIMIT: 'off',
    CATCHWORD_DB: db,
    // Runs that remove products wait for this long.
    CATCHWORD_DELTA_OVERLAP: '1s',
    CATCHWORD_HTTP_PORT: 'off',
    LOG_LEVEL: 'warn',
    ...more,
  };
}

/** The living products, from the view that users read. */
export function catalogOf(db: string): Map<string, string> {
  const rows = query<{ vbid: string; body: string }>(db, 'SELECT vbid, body FROM catalog');
  return new Map(rows.map(({ vbid, body }) => [vbid, body]));
}

/** Makes the mirror belong to the server at `url`. */
export function standIn(db: string, url: string): void {
  execute(db, `UPDATE mirror SET source_address = '${url}'`);
}

/** The sandbox's products, not read through the interface. */
export async function truthOf(url: string): Promise<Map<string, string>> {
  // A connection that is kept would be closed while a load keeps this thread busy.
  const response = await fetch(`${url}/_sandbox/truth`, { headers: { connection: 'close' } });
  expect(response.status).toBe(200);
  const lines = (await response.text()).split('\n').filter((line) => line !== '');
  return new Map(lines.map((line) => [(JSON.parse(line) as { vbid: string }).vbid, line]));
}

export async function mutate(url: string, mutation: Record<string, number>): Promise<void> {
  const response = await fetch(`${url}/_sandbox/mutate`, {
    method: 'POST',
    headers: { connection: 'close' },
    body: JSON.stringify(mutation),
  });
  expect(response.status).toBe(200);
}

/** Withdrawn products, which are still in the mirror but no longer in the sandbox's truth. */
export function withoutWithdrawn(catalog: ReadonlyMap<string, string>): Map<string, string> {
  return new Map([...catalog].filter(([, body]) => objectMembers(body).get('distributable') !== 'false'));
}

function sortedKeys(body: string): string {
  return JSON.stringify(Object.entries(JSON.parse(body) as object).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Expects the change log to have no hole and no duplicate, and its replay to give exactly the mirror.
 * @returns the number of records
 */
export function expectExactLog(db: string): number {
  const store = openStore(db);
  try {
    const history = createHistory(store);
    const replayed = new Map<string, string>();
    let seq = 0;
    for (;;) {
      const changes = history.after(seq, 1000);
      if (changes.length === 0) break;
      for (const change of changes) {
        const was = replayed.get(change.vbid);
        const isNew = change.op === 'created' || change.op === 'restored';
        // An `expect` for each would take most of the time of some tests.
        if (change.seq !== ++seq || (was === undefined) !== isNew || change.body === was) {
          expect({ after: was, expected: seq, change }).toBe('a change that follows from the one before');
        }
        if (change.body === null) replayed.delete(change.vbid);
        else replayed.set(change.vbid, change.body);
      }
    }
    const living = catalogOf(db);
    const differing = [...replayed].filter(([vbid, body]) => {
      const now = living.get(vbid);
      return now !== body && (now === undefined || sortedKeys(now) !== sortedKeys(body));
    });
    expect(differing).toEqual([]);
    expect(living.size).toBe(replayed.size);
    expect(store.products.living()).toBe(replayed.size);
    expect(store.changes.lastSeq()).toBe(seq);
    expect(store.checkFile()).toEqual([]);
    return seq;
  } finally {
    store.close();
  }
}
