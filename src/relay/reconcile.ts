import { createLineBuffer, type LineBuffer } from '@catchword/sink-kit/line-buffers';
import { isSinkError, type Listing, type Mark, SinkError, type SinkEvent } from '@catchword/sink-kit/sink';
import { bucketOf, createSums, digestOf, digestOfJson, isDigest } from '@catchword/sink-kit/store-digest';
import { isSameMark } from '@catchword/sink-kit/stored-mark';
import { remaining, type SinkRow } from '../store/rows/sink-rows.ts';
import { needsFullRun } from '../store/rows/source-state.ts';
import type {
  CheckCounts,
  CheckExample,
  CheckRequest,
  SinkCheck,
  StoreDifference,
} from '../store/schema/sink-tables.ts';
import { replayText, unrepairableText } from './check-text.ts';
import { holdFillEnd, tooMany, writeIf } from './exit-limit.ts';
import { expectedProducts } from './expected-products.ts';
import type { FeedContext } from './feed-context.ts';
import type { Session } from './sink-session.ts';

/*
 * `sink verify`, its `--repair`, and the end of each fill, which removes what the fill did not deliver (`endFill`). It
 * brings a store to V of the mirror as of the store's position, while nothing is delivered to it: it compares what the store
 * lists, and applies what differs. First the sums of all buckets, then the products of those that differ, as many buckets at
 * once as have few enough products for memory. The history is read once, and leaves a line for each product in memory.
 */

/** Listed products that are in memory at once. */
const PORTION = 100_000;
/** A store that still differs then does not keep what it confirms. */
const MAX_ROUNDS = 4;
const MAX_EXAMPLES = 20;
/** A store that refuses more products refuses to be repaired. */
const MAX_REFUSED = 20;
/** The first memory of a bucket's lines, bytes: a dozen products. */
const FIRST_LINES = 512;
const DIGEST_CHARS = 15;

type Buckets = ReadonlySet<number>;
type Found = Readonly<Record<StoreDifference, readonly string[]>>;

/** A comparison under way: the mark of the store, and what it should have. */
type Pass = Awaited<ReturnType<typeof beginPass>>;

/** Lists the digests of what the store has. */
async function* listed(
  { leased, stopping }: FeedContext,
  { list, digests }: Session['listed'],
  { listing, mark }: { readonly listing: Listing; readonly mark: Mark },
  buckets: Buckets | null,
) {
  for await (const products of list?.(listing, buckets, mark, stopping) ?? []) {
    leased.check();
    for (const { vbid, digest, body = '', isRest = false } of products) {
      const own = listing.whole ? (digest ?? digestOfJson(body)) : digestOf(vbid);
      const made = digests === undefined ? own : digest;
      if (!isDigest(made)) {
        throw new SinkError('misconfigured', `the digest of ${vbid} is not 15 hexadecimal digits`);
      }
      yield { vbid, digest: made, isRest };
    }
  }
}

/** Reads what the store should have from the history, and the sums of what it has. */
async function beginPass(context: FeedContext, session: Session, row: SinkRow, listing: Listing, isRepair: boolean) {
  const mark = session.stored();
  const { digests } = session.listed;
  const products = expectedProducts(context, row);
  // Products with events that wait for a decision, or that an operator skipped: the store may have any version of them.
  const waiting = context.store.sinks.parked(row.id).filter(({ state }) => state !== 'delivered');
  const unjudged = new Set(waiting.map(({ vbid }) => vbid));
  const should = createSums();
  /** By bucket: of each product a line with its digest and its key, which has no line break (validate-page.ts rejects it). */
  const lines = new Map<number, LineBuffer>();
  let judged = 0;

  function digestOfEvent(event: SinkEvent): string {
    if (digests !== undefined) return digests.digestOf(event, listing);
    return listing.whole ? digestOfJson(event.body ?? '') : digestOf(event.vbid);
  }

  for await (const events of products.read()) {
    for (const event of events) {
      const [bucket, digest] = [bucketOf(event.vbid), digestOfEvent(event)];
      should.add(bucket, digest);
      if (unjudged.has(event.vbid)) continue;
      judged++;
      const buffer = lines.get(bucket) ?? createLineBuffer(FIRST_LINES);
      lines.set(bucket, buffer);
      buffer.append(Buffer.from(`${digest}${event.vbid}\n`));
    }
  }
  const has = createSums();
  const given = await digests?.sums?.(listing, mark, context.stopping);
  if (given === undefined) {
    const all = listed(context, session.listed, { listing, mark }, null);
    for await (const { vbid, digest } of all) has.add(bucketOf(vbid), digest);
  }
  const stored = given ?? has.sums;

  /** The buckets that differ, in portions that fit into memory. */
  function differing(): Buckets[] {
    const isDoubtful = new Set([...unjudged].map(bucketOf));
    const portions: Set<number>[] = [];
    let room = 0;
    for (const bucket of new Set([...should.sums.keys(), ...stored.keys(), ...isDoubtful])) {
      const [wanted, found] = [should.sums.get(bucket), stored.get(bucket)];
      if (wanted?.count === found?.count && wanted?.sum === found?.sum && !isDoubtful.has(bucket)) continue;
      const size = (wanted?.count ?? 0) + (found?.count ?? 0);
      if (portions.length === 0 || size > room) {
        portions.push(new Set());
        room = PORTION;
      }
      portions.at(-1)?.add(bucket);
      room -= size;
    }
    return portions;
  }

  return {
    context,
    session,
    row,
    listing,
    mark,
    isRepair,
    find: products.find,
    unjudged,
    /** How many products the store should have, and has. */
    judged,
    total: [...stored.values()].reduce((sum, { count }) => sum + count, 0),
    portions: differing(),
    /** The digests of the products that these buckets should have. */
    expected: (buckets: Buckets): Map<string, string> => {
      const texts = [...buckets].flatMap((bucket) =>
        (lines.get(bucket)?.bytes().toString() ?? '').split('\n').slice(0, -1),
      );
      return new Map(texts.map((line) => [line.slice(DIGEST_CHARS), line.slice(0, DIGEST_CHARS)]));
    },
    /** Why the store refuses products. */
    refused: new Map<string, string>(),
  };
}

/** Compares the products of these buckets. */
async function compareProducts(pass: Pass, buckets: Buckets): Promise<Found> {
  const { context, session, unjudged } = pass;
  const expected = pass.expected(buckets);
  const [seen, differing, extra] = [new Set<string>(), [] as string[], [] as string[]];
  for await (const { vbid, digest, isRest } of listed(context, session.listed, pass, buckets)) {
    const isJudged = buckets.has(bucketOf(vbid)) && !unjudged.has(vbid);
    // A store may return a product twice, as SCAN of Redis does.
    if (!isJudged || seen.has(vbid) || (isRest && expected.has(vbid))) continue;
    seen.add(vbid);
    const should = expected.get(vbid);
    if (should === undefined) extra.push(vbid);
    else if (should !== digest) differing.push(vbid);
  }
  return { differing, missing: [...expected.keys()].filter((vbid) => !seen.has(vbid)), extra };
}

/** Names what differs of these products, which the store has with another content. */
async function differencesOf(
  { context, session, listing }: Pass,
  events: readonly SinkEvent[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { digests } = session.listed;
  const { whole } = listing;
  const named =
    whole && events.length > 0 ? await digests?.differences?.(events, listing, context.stopping) : undefined;
  return named ?? new Map(events.map(({ vbid }) => [vbid, [whole ? 'JSON' : 'seq']]));
}

/** Products to bring to what they should be: their events, or null for those to remove. */
type Repairs = readonly (readonly [vbid: string, event: SinkEvent | null])[];

function refusedText(refused: Pass['refused'], number: string): string {
  const names = [...refused.keys()].slice(0, 3).join(', ');
  const [reason] = refused.values();
  return `the store refuses ${number} of the products, such as ${names}: ${reason}. Look there for what rejects them, such as a trigger or an index`;
}

/** Repairs products in one call; one by one where the store refuses some of them. */
async function send(pass: Pass, reason: StoreDifference, repairs: Repairs): Promise<void> {
  const { config, log, errorText } = pass.context;
  const events = repairs.flatMap(([, event]) => event ?? []);
  const extra = reason === 'extra' ? repairs.map(([vbid]) => vbid) : [];
  const differs = await differencesOf(pass, reason === 'differing' ? events : []);
  try {
    await pass.session.apply(events, extra, pass.mark);
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
    // At the end of a fill, these may be all products of another mirror.
    log[pass.isRepair ? 'info' : 'debug'](fields, 'a product of the store was repaired');
  }
}

/** Brings products to what they should be, as many at once as the sink takes. */
async function repair(pass: Pass, reason: StoreDifference, vbids: readonly string[]): Promise<void> {
  const { chars: mostChars } = pass.session.batch;
  const most = pass.context.mostEvents(pass.session.batch);
  let [some, chars] = [[] as Repairs[number][], 0];
  for (const vbid of vbids) {
    const [event = null] = reason === 'extra' ? [] : pass.find(vbid);
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
  const kinds = Object.keys(found) as StoreDifference[];
  const first = kinds.flatMap((difference) => found[difference].slice(0, room).map((vbid) => ({ vbid, difference })));
  const differs = await differencesOf(pass, found.differing.slice(0, room).flatMap(pass.find));
  return first.slice(0, room).map((one) => ({ ...one, differs: differs.get(one.vbid) ?? [] }));
}

/**
 * Compares portions of buckets, and applies what differs.
 * @param sends whether differing and missing products are sent
 * @param removes whether extra ones are removed
 */
async function round(pass: Pass, portions: readonly Buckets[], sends: boolean, removes: boolean) {
  const counts = { differing: 0, missing: 0, extra: 0 };
  const examples: CheckExample[] = [];
  const unequal: Buckets[] = [];
  for (const portion of portions) {
    const found = await compareProducts(pass, portion);
    if (Object.values(found).every(({ length }) => length === 0)) continue;
    unequal.push(portion);
    for (const kind of Object.keys(found) as StoreDifference[]) counts[kind] += found[kind].length;
    examples.push(...(await examplesOf(pass, found, MAX_EXAMPLES - examples.length)));
    if (sends) {
      await repair(pass, 'differing', found.differing);
      await repair(pass, 'missing', found.missing);
    }
    if (removes) await repair(pass, 'extra', found.extra);
  }
  return { counts, examples, unequal };
}

/**
 * Compares the store of an open sink with what it should have, and repairs it if asked to.
 * @throws what the store throws
 */
export async function compareStore(
  context: FeedContext,
  session: Session,
  row: SinkRow,
  { repair: repairs, removesAll }: CheckRequest,
  listing: Listing,
): Promise<CheckCounts & Pick<SinkCheck, 'examples' | 'error'>> {
  if (repairs && session.listed.apply === undefined) {
    throw new Error(`this store cannot be repaired: ${unrepairableText(row.kind)}. ${replayText(row.name)}`);
  }
  const pass = await beginPass(context, session, row, listing, true);
  const { judged, total, unjudged, refused } = pass;
  const { counts: found, examples, unequal } = await round(pass, pass.portions, repairs, false);
  const same = judged - found.differing - found.missing;
  const result = { ...found, same, repaired: 0, held: 0, notJudged: unjudged.size, examples };
  if (!repairs) return { ...result, error: null };
  // Before the first of them leaves, all are counted.
  const removes = removesAll || tooMany(context, found.extra, total) === null;
  const held = removes ? 0 : found.extra;
  let [again, left] = [unequal, 0];
  for (let nth = 2; again.length > 0 && nth <= MAX_ROUNDS; nth++) {
    // What another product was in the way of may be accepted now.
    if (nth < MAX_ROUNDS) refused.clear();
    const next = await round(pass, again, nth < MAX_ROUNDS, removes && nth < MAX_ROUNDS);
    left = next.counts.differing + next.counts.missing + (removes ? next.counts.extra : 0);
    again = left === 0 ? [] : next.unequal;
  }
  const error =
    refused.size === 0
      ? 'products differ again after each repair: look for a trigger, or for another program that writes there'
      : refusedText(refused, `${refused.size}`);
  return { ...result, repaired: remaining(result) - held - left, held, error: left === 0 ? null : error };
}

/** Sends what the store lacks once more, and removes what it should not have. @returns false if the sink is held before that */
async function removeRest(context: FeedContext, session: Session, row: SinkRow): Promise<boolean> {
  const pass = await beginPass(context, session, row, { whole: false, positions: false }, false);
  // Deliveries have noted them.
  context.noteViewFailures(false);
  const { counts, unequal } = await round(pass, pass.portions, true, false);
  const { missing } = counts.missing === 0 ? counts : (await round(pass, unequal, false, false)).counts;
  if (missing > 0) {
    const { judged, refused } = pass;
    const found = `the store has ${judged - missing} of the ${judged} products that its fill has delivered, so nothing is removed`;
    const why =
      refused.size > 0
        ? refusedText(refused, `${refused.size}`)
        : 'another program has changed it, or it takes two keys for one';
    throw new SinkError('misconfigured', `${found}: ${why}. ${replayText(row.name)}`);
  }
  if (counts.extra > 0) {
    if (holdFillEnd(context, row, counts.extra, pass.total)) return false;
    await round(pass, unequal, false, true);
  }
  if (counts.missing + counts.extra > 0) {
    const reason = `${counts.missing} missing, ${counts.extra} extra`;
    context.log.info({ sink: context.config.name, reason }, 'the store was repaired when its fill ended');
  }
  const end = context.markAt(row, row.cursor);
  if (!isSameMark(session.stored(), end)) await session.apply([], [], end);
  return true;
}

/**
 * Ends a fill once everything is delivered. Until the mirror is complete it does not: products that the mirror does not have
 * yet may exist.
 * @throws SinkError if the store does not have what was delivered
 */
export async function endFill(context: FeedContext, session: Session): Promise<void> {
  const { store } = context;
  const { row, hasAll } = store.read(() => {
    const row = context.row();
    return { row, hasAll: row.cursor === store.changes.lastSeq() && !needsFullRun(store) };
  });
  if (!hasAll || row.generation !== session.generation || session.hasFillEnded(row)) return;
  if (!(await removeRest(context, session, row))) return;
  writeIf(context, row, ({ sinks }) => {
    sinks.noteFillEnd(row.id, row.cursor);
    if (row.held?.why === 'fill') sinks.release(row.id);
  });
}
