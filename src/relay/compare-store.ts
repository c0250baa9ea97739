import { remaining, type SinkRow } from '../store/rows/sink-rows.ts';
import type { CheckCounts, CheckExample, CheckRequest, Difference, SinkCheck } from '../store/schema/sink-tables.ts';
import { replayText, unrepairableText } from './check-text.ts';
import { tooMany } from './exit-limit.ts';
import { expectedProducts } from './expected-products.ts';
import type { FeedContext } from './feed-context.ts';
import { isSinkError, type Mark, SinkError, type SinkEvent, type StoredProduct, type Verifier } from './sink.ts';
import type { Session } from './sink-session.ts';
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
/** A store that refuses more products refuses to be repaired. */
const MAX_REFUSED = 20;

type Buckets = ReadonlySet<number>;
type Found = Readonly<Record<Difference, readonly string[]>>;

export interface Comparison {
  readonly context: FeedContext;
  readonly session: Session;
  /** The sink, at the position of its store. */
  readonly row: SinkRow;
  readonly verifier: Verifier;
  readonly request: CheckRequest;
}

/** A comparison under way: the mark of the store, and what it should have. */
interface Pass extends Comparison {
  readonly mark: Mark;
  readonly expected: ReturnType<typeof expectedProducts>;
  readonly unjudged: ReadonlySet<string>;
  /** Whether a store may have products that it should not have. */
  readonly keepsExtra: boolean;
  /** Why the store refuses products. */
  readonly refused: Map<string, string>;
}

/** Reads the products that the store has. */
async function* storedProducts(pass: Pass, buckets: Buckets | null): AsyncGenerator<StoredProduct> {
  const { leased, stopping } = pass.context;
  for await (const products of pass.verifier.products(pass.request.deep, buckets, pass.mark, stopping)) {
    leased.check();
    for (const product of products) {
      if (!isDigest(product.digest)) {
        throw new SinkError('misconfigured', `the digest of ${product.vbid} is not 15 hexadecimal digits`);
      }
      yield product;
    }
  }
}

async function storedSums(pass: Pass) {
  const { context, verifier, request, mark } = pass;
  if (verifier.sums !== undefined) return await verifier.sums(request.deep, mark, context.stopping);
  const { sums, add } = createSums();
  for await (const { vbid, digest } of storedProducts(pass, null)) add(bucketOf(vbid), digest);
  return sums;
}

/** Compares the sums of all buckets. @returns those that differ, in portions that fit into memory, and how many products there are */
async function compareSums(pass: Pass) {
  const { expected, unjudged, verifier, request } = pass;
  const { sums, add } = createSums();
  let judged = 0;
  for await (const events of expected.read()) {
    for (const event of events) {
      if (!unjudged.has(event.vbid)) judged++;
      add(bucketOf(event.vbid), verifier.digestOf(event, request.deep));
    }
  }
  const stored = await storedSums(pass);
  const isDoubtful = new Set([...unjudged].map(bucketOf));
  const portions: Set<number>[] = [];
  let room = 0;
  for (const bucket of new Set([...sums.keys(), ...stored.keys(), ...isDoubtful])) {
    const [should, has] = [sums.get(bucket), stored.get(bucket)];
    if (should?.count === has?.count && should?.sum === has?.sum && !isDoubtful.has(bucket)) continue;
    const size = (should?.count ?? 0) + (has?.count ?? 0);
    if (portions.length === 0 || size > room) {
      portions.push(new Set());
      room = PORTION;
    }
    portions.at(-1)?.add(bucket);
    room -= size;
  }
  const total = [...stored.values()].reduce((sum, { count }) => sum + count, 0);
  return { portions, judged, total };
}

/** Compares the products of these buckets. */
async function compareProducts(pass: Pass, buckets: Buckets): Promise<Found> {
  const { unjudged, keepsExtra, verifier, request } = pass;
  const expected = new Map<string, string>();
  const isJudged = (vbid: string): boolean => buckets.has(bucketOf(vbid)) && !unjudged.has(vbid);
  for await (const events of pass.expected.read()) {
    const judged = events.filter(({ vbid }) => isJudged(vbid));
    for (const event of judged) expected.set(event.vbid, verifier.digestOf(event, request.deep));
  }
  const [seen, differing, extra] = [new Set<string>(), [] as string[], [] as string[]];
  for await (const { vbid, digest, isRest } of storedProducts(pass, buckets)) {
    // A store may return a product twice, as SCAN of Redis does.
    if (!isJudged(vbid) || seen.has(vbid) || (isRest === true && expected.has(vbid))) continue;
    seen.add(vbid);
    const should = expected.get(vbid);
    if (should === undefined) {
      if (!keepsExtra) extra.push(vbid);
    } else if (should !== digest) differing.push(vbid);
  }
  return { differing, missing: [...expected.keys()].filter((vbid) => !seen.has(vbid)), extra };
}

/** Names what differs of these products, which the store has with another content. */
async function differencesOf(
  { context, verifier, request: { deep } }: Pass,
  events: readonly SinkEvent[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const named = deep && events.length > 0 ? await verifier.differences?.(events, context.stopping) : undefined;
  return named ?? new Map(events.map(({ vbid }) => [vbid, [deep ? 'JSON' : 'seq']]));
}

/** Products to bring to what they should be: their events, or null for those to remove. */
type Repairs = readonly (readonly [vbid: string, event: SinkEvent | null])[];

function refusedText(refused: Pass['refused'], number: string): string {
  const names = [...refused.keys()].slice(0, 3).join(', ');
  const [reason] = refused.values();
  return `the store refuses ${number} of the products, such as ${names}: ${reason}. Look there for what rejects them, such as a trigger or an index`;
}

/** Repairs products in one call; one by one where the store refuses some of them. */
async function send(pass: Pass, reason: Difference, repairs: Repairs): Promise<void> {
  const { config, log, leased, stopping, errorText } = pass.context;
  const events = repairs.flatMap(([, event]) => event ?? []);
  const extra = reason === 'extra' ? repairs.map(([vbid]) => vbid) : [];
  const differs = await differencesOf(pass, reason === 'differing' ? events : []);
  leased.check();
  try {
    await pass.verifier.repair?.(events, extra, pass.mark, stopping);
  } catch (error) {
    if (!isSinkError(error) || error.failure !== 'refused') throw error;
    // Not a SinkError: the connection is of use.
    if (pass.refused.size === MAX_REFUSED) throw new Error(refusedText(pass.refused, `more than ${MAX_REFUSED}`));
    for (const one of repairs) {
      if (repairs.length > 1) await send(pass, reason, [one]);
      else {
        const fields = { sink: config.name, vbid: one[0], reason: errorText(error) };
        pass.refused.set(fields.vbid, fields.reason);
        log.error(fields, 'the store refuses a product that was to be repaired');
      }
    }
    return;
  }
  for (const [vbid] of repairs) {
    const fields = { sink: config.name, vbid, reason, differs: differs.get(vbid) ?? [] };
    log.info(fields, 'a product of the store was repaired');
  }
}

/** Brings products to what they should be, as many at once as the sink takes. */
async function repair(pass: Pass, reason: Difference, vbids: readonly string[]): Promise<void> {
  const { events: most, chars: mostChars } = pass.session.batch;
  let [some, chars] = [[] as Repairs[number][], 0];
  for (const vbid of vbids) {
    const [event = null] = reason === 'extra' ? [] : pass.expected.find(vbid);
    chars += event?.body?.length ?? 0;
    if (some.length > 0 && (some.length >= most || chars > mostChars)) {
      await send(pass, reason, some);
      [some, chars] = [[], event?.body?.length ?? 0];
    }
    some.push([vbid, event]);
  }
  if (some.length > 0) await send(pass, reason, some);
}

/** @param room the most that are wanted */
async function examplesOf(pass: Pass, found: Found, room: number): Promise<CheckExample[]> {
  const kinds = Object.keys(found) as Difference[];
  const first = kinds.flatMap((difference) => found[difference].slice(0, room).map((vbid) => ({ vbid, difference })));
  const differs = await differencesOf(pass, found.differing.slice(0, room).flatMap(pass.expected.find));
  return first.slice(0, room).map((one) => ({ ...one, differs: differs.get(one.vbid) ?? [] }));
}

/**
 * Compares portions of buckets, and repairs what differs.
 * @param mayLeave whether so many extra products may be removed; if not, all stay
 */
async function settle(
  pass: Pass,
  portions: readonly Buckets[],
  repairs: boolean,
  mayLeave: (removed: number) => boolean,
) {
  const counts = { differing: 0, missing: 0, extra: 0, repaired: 0 };
  const examples: CheckExample[] = [];
  const unequal: Buckets[] = [];
  const surplus: string[] = [];
  for (const portion of portions) {
    const found = await compareProducts(pass, portion);
    if (Object.values(found).every(({ length }) => length === 0)) continue;
    unequal.push(portion);
    for (const kind of Object.keys(found) as Difference[]) counts[kind] += found[kind].length;
    examples.push(...(await examplesOf(pass, found, MAX_EXAMPLES - examples.length)));
    if (!repairs) continue;
    await repair(pass, 'differing', found.differing);
    await repair(pass, 'missing', found.missing);
    if (pass.request.removesAll) await repair(pass, 'extra', found.extra);
    else if (mayLeave(counts.extra)) surplus.push(...found.extra);
  }
  if (mayLeave(counts.extra)) await repair(pass, 'extra', surplus);
  return { counts, examples, unequal };
}

/**
 * Compares the store of an open sink with what it should have, and repairs it if asked to.
 * @throws what the store throws
 */
export async function compareStore(
  comparison: Comparison,
): Promise<CheckCounts & Pick<SinkCheck, 'examples' | 'error'>> {
  const { context, session, row, request, verifier } = comparison;
  if (request.repair && verifier.repair === undefined) {
    throw new Error(`this store cannot be repaired: ${unrepairableText(row.kind)}. ${replayText(row.name)}`);
  }
  // Products with events that wait for a decision, or that an operator skipped: the store may have any version of them.
  const waiting = context.store.sinks.parked(row.id).filter(({ state }) => state !== 'delivered');
  const unjudged = new Set(waiting.map(({ vbid }) => vbid));
  const expected = expectedProducts(context, row);
  const refused = new Map<string, string>();
  const pass: Pass = { ...comparison, mark: session.stored(), expected, unjudged, keepsExtra: false, refused };
  const { portions, judged, total } = await compareSums(pass);
  const mayLeave = (removed: number): boolean => request.removesAll || tooMany(context, removed, total) === null;
  const { counts: found, examples, unequal } = await settle(pass, portions, request.repair, mayLeave);
  const result = { ...found, same: judged - found.differing - found.missing, notJudged: unjudged.size, examples };
  if (!request.repair) return { ...result, held: 0, error: null };
  const held = mayLeave(found.extra) ? 0 : found.extra;
  let [again, left] = [unequal, 0];
  for (let round = 1; again.length > 0 && round <= MAX_REPAIRS; round++) {
    // What another product was in the way of may be accepted now.
    if (round < MAX_REPAIRS) refused.clear();
    const next = await settle({ ...pass, keepsExtra: held > 0 }, again, round < MAX_REPAIRS, mayLeave);
    [again, left] = [next.unequal, remaining(next.counts)];
  }
  const error =
    refused.size === 0
      ? 'products differ again after each repair: look for a trigger, or for another program that writes there'
      : refusedText(refused, `${refused.size}`);
  return { ...result, repaired: remaining(found) - held - left, held, error: left === 0 ? null : error };
}
