import { setImmediate as otherWork } from 'node:timers/promises';
import type { RecordedChange } from '../catalog/event.ts';
import { changesUpTo, createHistory } from '../store/history/history.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { CheckCounts, CheckRequest, Difference, SinkCheck } from '../store/schema/sink-tables.ts';
import { viewedChange } from '../view/viewed-change.ts';
import type { FeedContext } from './feed-context.ts';
import { ChangeEvent } from './read-batch.ts';
import { type Mark, SinkError, type SinkEvent, type StoredProduct, type Verifier } from './sink.ts';
import type { Session } from './sink-session.ts';
import { viewAt } from './store-contents.ts';
import { bucketOf, createSums, isDigest } from './store-digest.ts';

/*
 * Compares a store with V of the mirror as of the store's position, while nothing is delivered to it. First the sums of all
 * buckets, then the products of those that differ, as many buckets at once as have few enough products for memory. A repair
 * ends when comparing its buckets again finds nothing.
 */

/** Products whose digests are in memory at once. */
const PORTION = 100_000;
/** A store that still differs then does not keep what it confirms. */
const MAX_REPAIRS = 3;
const MAX_EXAMPLES = 20;

type Buckets = ReadonlySet<number>;
type Found = Readonly<Record<Difference, readonly string[]>>;

export interface Comparison {
  readonly context: FeedContext;
  readonly session: Session;
  /** The sink, at the position of its store. */
  readonly row: SinkRow;
  readonly verifier: Verifier;
  readonly request: CheckRequest;
  /** Ends it, with this signal's reason. */
  readonly signal: AbortSignal;
}

/** The products that the store should have: made from the history, because the mirror goes on changing. */
function createSource({ context: { store, prepare, readOptions }, row, signal }: Comparison) {
  const history = createHistory(store);
  const how = readOptions();
  const view = viewAt(store.sinks.views(row.id), row.generation);

  function eventsOf(change: RecordedChange): SinkEvent[] {
    const { tag = null } = view ?? {};
    const seen = view === undefined || tag === null ? change : viewedChange(prepare(view), change, tag, true);
    return seen === null || seen.body === null ? [] : [new ChangeEvent(seen, how)];
  }

  return {
    /** Reads all of them. Other sinks go on between the steps. */
    read: async function* (): AsyncGenerator<readonly SinkEvent[]> {
      for (const changes of changesUpTo(store, row.cursor)) {
        await otherWork();
        signal.throwIfAborted();
        yield changes.flatMap(eventsOf);
      }
    },
    find: (vbid: string): SinkEvent[] => {
      const change = history.asOf(vbid, row.cursor);
      return change === null ? [] : eventsOf(change);
    },
  };
}

/** Products with events that wait for a decision, or that an operator skipped: the store may have any version of them. */
function unjudgedOf({ context: { store }, row }: Comparison): ReadonlySet<string> {
  const waiting = store.sinks.parked(row.id).filter(({ state }) => state !== 'delivered');
  return new Set(waiting.map(({ vbid }) => vbid));
}

function createComparer(comparison: Comparison, mark: Mark) {
  const { context, verifier, request, signal } = comparison;
  const { deep } = request;
  const source = createSource(comparison);
  const unjudged = unjudgedOf(comparison);

  async function* stored(buckets: Buckets | null): AsyncGenerator<StoredProduct> {
    for await (const products of verifier.products(deep, buckets, mark, signal)) {
      context.leased.check();
      for (const product of products) {
        if (!isDigest(product.digest)) {
          throw new SinkError('misconfigured', `the digest of ${product.vbid} is not 15 hexadecimal digits`);
        }
        yield product;
      }
    }
  }

  async function storedSums() {
    if (verifier.sums !== undefined) return await verifier.sums(deep, mark, signal);
    const { sums, add } = createSums();
    for await (const { vbid, digest } of stored(null)) add(bucketOf(vbid), digest);
    return sums;
  }

  return {
    source,
    unjudged,
    /** Compares the sums of all buckets. @returns those that differ, in portions, and how many products there are */
    bySums: async () => {
      const { sums: expected, add } = createSums();
      let judged = 0;
      for await (const events of source.read()) {
        for (const event of events) {
          if (!unjudged.has(event.vbid)) judged++;
          add(bucketOf(event.vbid), verifier.digestOf(event, deep));
        }
      }
      const has = await storedSums();
      const differing = new Set([...unjudged].map(bucketOf));
      for (const bucket of new Set([...expected.keys(), ...has.keys()])) {
        const [a, b] = [expected.get(bucket), has.get(bucket)];
        if (a?.count !== b?.count || a?.sum !== b?.sum) differing.add(bucket);
      }
      const sizeOf = (bucket: number) => (expected.get(bucket)?.count ?? 0) + (has.get(bucket)?.count ?? 0);
      const total = [...has.values()].reduce((sum, { count }) => sum + count, 0);
      return { portions: portionsOf(differing, sizeOf), judged, total };
    },
    /** Compares the products of these buckets. */
    byProducts: async (buckets: Buckets): Promise<Found> => {
      const expected = new Map<string, string>();
      const isJudged = (vbid: string): boolean => buckets.has(bucketOf(vbid)) && !unjudged.has(vbid);
      for await (const events of source.read()) {
        const judged = events.filter(({ vbid }) => isJudged(vbid));
        for (const event of judged) expected.set(event.vbid, verifier.digestOf(event, deep));
      }
      const [seen, differing, extra] = [new Set<string>(), [] as string[], [] as string[]];
      for await (const { vbid, digest } of stored(buckets)) {
        // A store may return a product twice, as SCAN of Redis does.
        if (!isJudged(vbid) || seen.has(vbid)) continue;
        seen.add(vbid);
        const should = expected.get(vbid);
        if (should === undefined) extra.push(vbid);
        else if (should !== digest) differing.push(vbid);
      }
      return { differing, missing: [...expected.keys()].filter((vbid) => !seen.has(vbid)), extra };
    },
  };
}

/** Splits buckets into portions that fit into memory. */
function portionsOf(buckets: Buckets, sizeOf: (bucket: number) => number): Buckets[] {
  const portions = [new Set<number>()];
  let size = 0;
  for (const bucket of buckets) {
    size += sizeOf(bucket);
    if (size > PORTION) {
      portions.push(new Set());
      size = sizeOf(bucket);
    }
    portions.at(-1)?.add(bucket);
  }
  return portions.filter((portion) => portion.size > 0);
}

function createRepair({ context, session, verifier, signal }: Comparison, mark: Mark) {
  const { config, log, leased } = context;
  const { events: most, chars: mostChars } = session.batch;
  let repaired = 0;

  async function send(difference: Difference, events: readonly SinkEvent[], extra: readonly string[]): Promise<void> {
    leased.check();
    await verifier.repair(events, extra, mark, signal);
    const vbids = [...events.map(({ vbid }) => vbid), ...extra];
    repaired += vbids.length;
    for (const vbid of vbids)
      log.info({ sink: config.name, vbid, reason: difference }, 'a product of the store was repaired');
  }

  return {
    /** How many were repaired; products that differ again do not count. */
    repaired: () => repaired,
    differAgain: (products: number): void => {
      repaired -= products;
    },
    write: async (difference: Difference, vbids: readonly string[], find: (vbid: string) => SinkEvent[]) => {
      let events: SinkEvent[] = [];
      let chars = 0;
      for (const vbid of vbids) {
        for (const event of find(vbid)) {
          const more = event.body?.length ?? 0;
          if (events.length === most || (events.length > 0 && chars + more > mostChars)) {
            await send(difference, events, []);
            [events, chars] = [[], 0];
          }
          events.push(event);
          chars += more;
        }
      }
      if (events.length > 0) await send(difference, events, []);
    },
    remove: async (vbids: readonly string[]): Promise<void> => {
      for (let at = 0; at < vbids.length; at += most) await send('extra', [], vbids.slice(at, at + most));
    },
  };
}

/**
 * Compares the store of an open sink with what it should have, and repairs it if asked to.
 * @throws what the store throws
 */
export async function compareStore(
  comparison: Comparison,
): Promise<CheckCounts & Pick<SinkCheck, 'examples' | 'error'>> {
  const { context, session, request } = comparison;
  const { repair: repairs, removesAll } = request;
  const mark = session.stored();
  const { source, unjudged, ...compare } = createComparer(comparison, mark);
  const repair = createRepair(comparison, mark);
  const found = { differing: 0, missing: 0, extra: 0 };
  const examples: { readonly vbid: string; readonly difference: Difference }[] = [];
  const { portions: differing, judged, total } = await compare.bySums();
  const limit = removesAll ? Number.POSITIVE_INFINITY : context.removalLimit(total);
  let held = 0;
  let error: string | null = null;
  let portions = differing;
  for (let round = 0; portions.length > 0; round++) {
    const touched: Buckets[] = [];
    /** At most one more than may be removed. */
    const surplus: string[] = [];
    for (const portion of portions) {
      const { extra, ...others } = await compare.byProducts(portion);
      const all = { ...others, extra: held > 0 ? [] : extra };
      const kinds = Object.entries(all) as [Difference, readonly string[]][];
      const sum = kinds.reduce((count, [, { length }]) => count + length, 0);
      if (sum === 0) continue;
      touched.push(portion);
      for (const [difference, vbids] of round === 0 ? kinds : []) {
        found[difference] += vbids.length;
        examples.push(...vbids.slice(0, MAX_EXAMPLES - examples.length).map((vbid) => ({ vbid, difference })));
      }
      if (round > 0) repair.differAgain(sum);
      if (!repairs || round === MAX_REPAIRS) continue;
      await repair.write('differing', all.differing, source.find);
      await repair.write('missing', all.missing, source.find);
      if (removesAll) await repair.remove(all.extra);
      else surplus.push(...all.extra.slice(0, limit + 1 - surplus.length));
    }
    if (surplus.length > limit) held = found.extra;
    else await repair.remove(surplus);
    if (!repairs) break;
    if (touched.length > 0 && round === MAX_REPAIRS) {
      error = 'products differ again after each repair: look for a trigger, or for another program that writes there';
      break;
    }
    portions = touched;
  }
  const same = judged - found.differing - found.missing;
  return { same, ...found, repaired: repair.repaired(), held, notJudged: unjudged.size, examples, error };
}
