import { join } from 'node:path';
import type { RunKind } from '@catchword/catalog/run-types';
import { startRawSource } from '@catchword/testing/raw-source';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { load } from '../support/load.ts';
import { settingsFor } from '../support/mirror.ts';

/** Starts a source of these items, and names the path of its future mirror. */
export async function rawPlace(items: readonly (string | Buffer)[], more: Record<string, string> = {}, gzip = false) {
  const source = await startRawSource(
    items.map((item) => Buffer.from(item)),
    { gzip },
  );
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  const settings = settingsFor(source.url, db, { LOG_LEVEL: 'silent', ...more });
  const run = (kind: RunKind = 'full', own: Record<string, string> = {}) => load({ ...settings, ...own }, kind);
  return { source, directory, db, settings, run };
}

/** Items that have no other fields. */
export function bodies(vbids: readonly string[]): Buffer[] {
  return vbids.map((vbid) => Buffer.from(JSON.stringify({ vbid })));
}

/** The vbids `B0`, `B1` … */
export function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `B${at}`);
}

export function isDelta({ searchParams }: URL): boolean {
  return searchParams.has('from');
}
