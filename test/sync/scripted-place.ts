import { expect } from 'vitest';
import { catalogOf } from '../support/mirror.ts';
import { isDelta, rawPlace } from './raw-place.ts';

/* A source that a script moves. Windows hold 20 products and share 5: the offsets 0 to 19, then 15 to 29, then 20 to 39. */

const SETTINGS = { CATCHWORD_PER_PAGE: '20', CATCHWORD_SEAM: '5', CATCHWORD_CONCURRENCY: '1' };

/** `p100`, `p101` … */
export function names(count: number, from = 100): string[] {
  return Array.from({ length: count }, (_, at) => `p${from + at}`);
}

/** From when a delta asks; milliseconds since 1970. */
export function fromOf({ searchParams }: URL): number {
  return Date.parse(searchParams.get('from') ?? '');
}

/** A source whose list and deltas a script moves before each answer. */
export async function scripted(vbids: readonly string[], more: Record<string, string> = {}) {
  const place = await rawPlace([], { ...SETTINGS, CATCHWORD_DELTA_OVERLAP: '0s', ...more });
  const { source } = place;
  const fields = new Map<string, object>();
  const body = (vbid: string): Buffer => Buffer.from(JSON.stringify({ vbid, title: vbid, ...fields.get(vbid) }));
  const shelf = {
    list: [...vbids],
    /** What deltas show, in their order. */
    told: [] as string[],
    edit: (vbid: string, change: object) => fields.set(vbid, { ...fields.get(vbid), ...change }),
    erase: (...gone: string[]) => {
      shelf.list = shelf.list.filter((vbid) => !gone.includes(vbid));
      shelf.told = shelf.told.filter((vbid) => !gone.includes(vbid));
    },
    /** Called before the windows of lists, and of deltas, with how many were asked before. */
    onList: (_before: number): void => {},
    onDelta: (_before: number, _page: number, _from: number): void => {},
    /** Whether the list is answered empty. */
    isBlank: (_before: number): boolean => false,
  };
  let [lists, deltas] = [0, 0];

  source.instead = (asked) => {
    if (isDelta(asked)) shelf.onDelta(deltas++, Number(asked.searchParams.get('page')), fromOf(asked));
    else shelf.onList(lists++);
    source.items = !isDelta(asked) && shelf.isBlank(lists - 1) ? [] : shelf.list.map(body);
    source.changed = shelf.told.map(body);
    return null;
  };

  return {
    ...place,
    shelf,
    /** Fills the mirror. @param hasControl whether the next full run controls its deltas */
    fill: async (hasControl = false) => {
      const selected: Record<string, string> = hasControl ? {} : { CATCHWORD_CURRENCY: 'EUR' };
      expect(await place.run('full', selected)).toMatchObject({ proof: 'sealed' });
      [lists, deltas] = [0, 0];
    },
    has: (vbid: string): boolean => catalogOf(place.db).has(vbid),
  };
}
