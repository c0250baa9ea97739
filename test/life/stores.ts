import { objectMembers } from '@catchword/catalog/json-text';
import { query } from '@catchword/testing/sqlite';
import pg from 'pg';

/** A product in a store. */
export interface Kept {
  /** Sequence of the change that brought it. */
  readonly seq: number;
  /** JSON text. */
  readonly body: string;
}

const SHOWN = 5;

export function mirrorOf(db: string): Map<string, Kept> {
  const rows = query<Kept & { vbid: string }>(db, 'SELECT vbid, changed_seq AS seq, body FROM catalog');
  return new Map(rows.map(({ vbid, ...kept }) => [vbid, kept]));
}

export async function tableOf(client: pg.Client, table: string): Promise<Map<string, Kept>> {
  const { rows } = await client.query<{ vbid: string; seq: string; body: string }>(
    `SELECT vbid, seq, body::text AS body FROM ${pg.escapeIdentifier(table)} WHERE removed_at IS NULL`,
  );
  return new Map(rows.map(({ vbid, seq, body }) => [vbid, { seq: Number(seq), body }]));
}

/** Normalizes JSON, because PostgreSQL keeps values, not their text. */
function normal(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normal);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, member]) => [name, normal(member)]));
}

function isSameProduct(a: Kept, b: Kept): boolean {
  if (a.seq !== b.seq) return false;
  return a.body === b.body || JSON.stringify(normal(JSON.parse(a.body))) === JSON.stringify(normal(JSON.parse(b.body)));
}

/** How `store` differs from the mirror: a few examples and the counts; empty if it is equal. */
export function differences(mirror: ReadonlyMap<string, Kept>, store: ReadonlyMap<string, Kept>): string[] {
  const found: string[] = [];
  for (const [vbid, product] of mirror) {
    const there = store.get(vbid);
    if (there === undefined) found.push(`${vbid} (${product.seq}) is missing`);
    else if (!isSameProduct(product, there)) found.push(`${vbid} is as of ${there.seq}, not of ${product.seq}`);
  }
  for (const [vbid, { seq }] of store) if (!mirror.has(vbid)) found.push(`${vbid} (${seq}) is too much`);
  if (found.length === 0) return [];
  return [
    `${found.length} differences, ${mirror.size} products here and ${store.size} there`,
    ...found.slice(0, SHOWN),
  ];
}

/** How the mirror differs from the source. Withdrawn products stay in the mirror while the source announces them. */
export function differencesToSource(mirror: ReadonlyMap<string, Kept>, truth: ReadonlyMap<string, string>): string[] {
  const living = [...mirror].filter(([, { body }]) => objectMembers(body).get('distributable') !== 'false');
  const expected = new Map([...truth].map(([vbid, body]) => [vbid, { seq: 0, body }]));
  return differences(expected, new Map(living.map(([vbid, { body }]) => [vbid, { seq: 0, body }])));
}
