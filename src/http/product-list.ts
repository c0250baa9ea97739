import type { Clock } from '../base/clock.ts';
import { idAt } from '../store/history/log-position.ts';
import type { Store } from '../store/store.ts';
import { createAbsence } from '../view/absent-members.ts';
import { createViewReader } from '../view/read-view.ts';
import type { View } from '../view/view.ts';

/** A page ends after so many products that a view judged, and after so many characters. For safety. */
const PAGE_JUDGED = 5_000;
const PAGE_CHARACTERS = 8_000_000;
/** A page ends after a step that took longer, milliseconds: other requests have waited. */
export const SLOW_STEP_MS = 250;
/** Products that are read at once: at most so many, and about so many characters. For safety: other requests wait. */
const MOST = 200;
const PORTION_CHARACTERS = 500_000;

/**
 * JSON with the products after a key that a view yields, in pieces that are read one by one.
 * @throws a piece: CatchwordError MIRROR_REPLACED
 */
export function* productPieces(
  store: Store,
  clock: Clock,
  view: View,
  after: string,
  limit: number,
): Generator<string, void> {
  const { products: productsOf } = createViewReader(store);
  const absence = createAbsence(view.paths);
  const sum = { count: 0, characters: 0, read: 0, failed: 0 };
  // Noted first: what changes while the page is read comes after it.
  const position = JSON.stringify(store.read(() => idAt(store, store.changes.lastSeq())));
  let head = '{"products":[';
  let next: string | null = after;
  let atOnce = 20;
  let isSlow = false;
  while (next !== null && !isSlow && sum.count < limit && sum.read < PAGE_JUDGED && sum.characters < PAGE_CHARACTERS) {
    const beganAt = clock.now();
    const [from, before]: [string, number] = [next, view.failures().count];
    const { products, read, ...found } = store.read(() => {
      store.check();
      return productsOf(from, atOnce, limit - sum.count, view);
    });
    next = found.next;
    isSlow = clock.now() - beganAt > SLOW_STEP_MS;
    for (const { body } of read) absence.see(body);
    // The texts are inserted unparsed, so that no number is rounded. An empty piece lets others have their turn.
    const text = products.map(({ body }) => body).join(',');
    sum.count += products.length;
    sum.characters += text.length;
    sum.read += read.length;
    sum.failed += view.failures().count - before;
    yield products.length === 0 ? '' : head + text;
    if (products.length > 0) head = ',';
    const characters = read.reduce((all, { body }) => all + body.length, 1);
    atOnce = Math.min(MOST, Math.ceil((PORTION_CHARACTERS * read.length) / characters));
  }
  const absent = absence.found().map(({ path }) => path);
  const named = absent.length === 0 ? '' : `,"absent":${JSON.stringify(absent)}`;
  yield `${head === ',' ? '' : head}],"next":${JSON.stringify(next)},"position":${position},"failed":${sum.failed}${named}}`;
}
