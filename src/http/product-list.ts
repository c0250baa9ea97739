import { idAt } from '../store/history/log-position.ts';
import type { Store } from '../store/store.ts';
import type { Steps } from './read-steps.ts';
import type { ReaderView } from './reader-views.ts';

/** A page ends after so many products that a view judged, and after so many characters. For safety. */
const PAGE_JUDGED = 5_000;
const PAGE_CHARACTERS = 8_000_000;
/** Products that are read at once: at most so many, and about so many characters. For safety: other requests wait. */
const MOST = 200;
const PORTION_CHARACTERS = 500_000;

/**
 * JSON with the products after a key that a view yields, in pieces that are read one by one.
 * @param asOf default: now @throws a piece: CatchwordError MIRROR_REPLACED, SEARCH_TIMEOUT
 */
export async function* productPieces(
  store: Store,
  { products: productsOf }: Pick<Steps, 'products'>,
  { given, digest }: ReaderView,
  after: string,
  limit: number,
  asOf = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<string, void> {
  const sum = { count: 0, characters: 0, read: 0, failed: 0 };
  /** Members that no product has had so far. */
  let absent: readonly string[] | undefined;
  // Noted first: what changes while the page is read comes after it.
  const position = JSON.stringify(store.read(() => idAt(store, Math.min(asOf, store.changes.lastSeq()), digest)));
  let head = '{"products":[';
  let next: string | null = after;
  let atOnce = 20;
  let isSlow = false;
  while (next !== null && !isSlow && sum.count < limit && sum.read < PAGE_JUDGED && sum.characters < PAGE_CHARACTERS) {
    const step: Awaited<ReturnType<typeof productsOf>> = await productsOf(given, next, atOnce, limit - sum.count, asOf);
    store.check();
    ({ next, isSlow } = step);
    if (step.read > 0) absent = absent?.filter((path) => step.absent.includes(path)) ?? step.absent;
    sum.count += step.count;
    sum.characters += step.text.length;
    sum.read += step.read;
    sum.failed += step.failed;
    // An empty piece lets others have their turn.
    yield step.count === 0 ? '' : head + step.text;
    if (step.count > 0) head = ',';
    if (step.read > 0) atOnce = Math.min(MOST, Math.ceil((PORTION_CHARACTERS * step.read) / (step.readCharacters + 1)));
  }
  const named = absent === undefined || absent.length === 0 ? '' : `,"absent":${JSON.stringify(absent)}`;
  yield `${head === ',' ? '' : head}],"next":${JSON.stringify(next)},"position":${position},"failed":${sum.failed}${named}}`;
}
