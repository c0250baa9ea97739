import { type Window, windowKey } from '@catchword/catalog/page-types';
import { startOf } from '../proof/plan.ts';
import { BEHIND } from '../store/rows/ids.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { Applied } from './apply-page.ts';

/*
 * Products that the list shows at two places with two contents, although no delta tells of them. The content in front
 * counts (judge-item.ts), so the other one does not count as a change. Whether the list has both is another question: the
 * product may have moved from one place to the other between two answers, and then another product may be hidden. Two
 * things show that the list has both: one answer holds both, or both are at their places, each with its content, in one
 * pass and again in a later one. A product that has one place would have had to leave it, change, return to it and change
 * back.
 */

/** Products that are examined: each takes memory. If there are more, nothing is shown of any of them. */
const EXAMINED = 1_000;

/** What a pass shows of a product: the content by place and content. */
type Places = Map<string, number>;

/** At how many places both passes show the same; 0 if these have the same content. */
function bothShow(places: Places, later: Places): number {
  const both = [...places].filter(([place]) => later.has(place));
  return new Set(both.map(([, content]) => content)).size > 1 ? both.length : 0;
}

/**
 * Examines the places of such products in one list.
 * @param windows of its pass `root` and of its repairs
 * @param isModified whether a delta tells of the product
 */
export function examinePlaces(
  { runs, products }: Reader,
  windows: readonly Applied[],
  root: number,
  isModified: (id: number) => boolean,
) {
  const found = new Set<number>();
  for (const { runId, pass, ...window } of windows) {
    for (const [id, shown] of runs.shownIn(runId, pass, window)) if (shown > BEHIND && !isModified(id)) found.add(id);
  }
  /** By product and pass. */
  const sightings = new Map<number, Map<number, Places>>();
  const inOneAnswer = new Set<number>();
  const holders = new Map<number, Window[]>();
  for (const one of found.size > EXAMINED ? [] : windows) {
    const shown = runs.shownIn(one.runId, one.pass, one);
    const ids = found.size === 0 ? [] : runs.idsOf(one.runId, one.pass, one);
    for (const [at, id] of ids.entries()) {
      if (!found.has(id)) continue;
      if (ids.indexOf(id) < at) inOneAnswer.add(id);
      if (one.pass === root) holders.set(id, [...(holders.get(id) ?? []), one]);
      // Not what the mirror had then, if that was changed since.
      if (!shown.has(id) && products.changedSeq(id) > one.seq) continue;
      const content = shown.get(id) ?? 0;
      const byPass = sightings.get(id) ?? new Map<number, Places>();
      const places = byPass.get(one.pass) ?? new Map();
      sightings.set(id, byPass.set(one.pass, places.set(`${startOf(one) + at} ${content}`, content)));
    }
  }
  /** Of each product that has several places: their number. */
  const several = new Map<number, number>();
  for (const [id, byPass] of sightings) {
    const { [root]: first, ...later } = Object.fromEntries(byPass);
    const most = Math.max(0, ...Object.values(later).map((places) => bothShow(first ?? new Map(), places)));
    if (most > 0 && !inOneAnswer.has(id)) several.set(id, most);
  }
  const read = new Set(windows.filter(({ pass }) => pass !== root).map(windowKey));
  const unproven = [...found].filter((id) => !several.has(id) && !inOneAnswer.has(id));
  const again = new Map(unproven.flatMap((id) => holders.get(id) ?? []).map((one) => [windowKey(one), one]));
  const contents = (id: number) => [...(sightings.get(id)?.values() ?? [])].flatMap((places) => [...places.values()]);
  return {
    /** Unproven ones that were shown with both contents. */
    likely: unproven.filter((id) => new Set(contents(id)).size > 1),
    /** Products with two contents that the list has twice. */
    twice: [...found].filter((id) => several.has(id) || inOneAnswer.has(id)),
    /** How many places they take up besides their first one, without places that one answer shows. */
    more: [...several.values()].reduce((sum, places) => sum + places - 1, 0),
    unproven,
    /** Windows of the first pass to read again, which may show that the list has both. */
    again: [...again].flatMap(([key, { page, perPage }]) => (read.has(key) ? [] : [{ page, perPage }])),
  };
}
