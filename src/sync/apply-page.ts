import { type Difference, difference, type Pointer, sameContent } from '../catalog/content.ts';
import type { CapturedPage, Envelope, PageResponse, RejectedItem } from '../catalog/page.ts';
import type { Product } from '../catalog/product.ts';
import { doubtAge, momentOf, sourceTimeOf } from '../catalog/watermark.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError } from '../errors.ts';
import type { NewChange } from '../store/changes.ts';
import type { Leased } from '../store/lease.ts';
import type { KnownProduct } from '../store/products.ts';
import type { Reader } from '../store/reader.ts';
import type { Checkpoint } from '../store/runs.ts';
import type { KeeperWriter } from '../store/writers.ts';

/**
 * Applies pages of one run.
 *
 * What a page changes, its change records and its checkpoint are written in one transaction, or nothing of them is.
 * Pages that come close together share a transaction, because SQLite writes whole 16-KB pages: products whose keys are
 * in no order touch an index page each, and a million of them applied 1,000 at a time wrote 57 GB (measured); applied
 * `BATCH_PAGES` pages at a time they write less than a tenth of that. A checkpoint of a page without changes costs
 * 1.5 KB in a batch and 50 KB alone. A crash costs reading again what was in the batch.
 */
export interface Applier {
  /**
   * Takes a page into the batch, and applies the batch when it is full. The first page of a pass is applied at once: it
   * pins the source time.
   * @returns what was applied by this call
   * @throws CatchwordError LEASE_LOST, RUN_CANCELLED, MIRROR_WRITE_FAILED; then nothing of the batch was written
   */
  take(captured: CapturedPage): readonly Applied[];
  /** Applies the batch; returns and throws as `take` does. With `olderThanMs`, only if it waits for so long. */
  flush(olderThanMs?: number): readonly Applied[];
}

/** A checkpoint that was written. Its ids stay in the file: a run's would not fit in memory that is to stay flat. */
export type Applied = Omit<Checkpoint, 'ids'>;

/** Pages that change something. Measured: with 32 a first load is slower, and 80 MB more are in use. */
const BATCH_PAGES = 16;
/** Pages in all: one that changes nothing waits as a list of ids. */
const BATCH_ALL_PAGES = 64;
/** Of text: large products fill a batch sooner, so that memory stays flat. */
const BATCH_CHARS = 8_000_000;

export interface ApplierOptions {
  readonly store: Reader;
  readonly leased: Leased<KeeperWriter>;
  readonly clock: Clock;
  readonly runId: number;
  readonly ignoreFields: readonly Pointer[];
  /** What a product is recorded as that the source no longer distributes. */
  readonly withdrawnAs: 'updated' | 'removed';
  /** How late deltas may be; an answer that a cache kept for longer is doubted. Milliseconds. */
  readonly overlapMs: number;
}

/** A page that waits in the batch. A product that the mirror has already, word for word, is held by its id alone. */
interface WaitingPage extends Omit<CapturedPage, 'page' | 'response'> {
  readonly response: Omit<PageResponse, 'text'>;
  readonly envelope: Envelope;
  readonly doubt: string | null;
  readonly rejected: readonly RejectedItem[];
  /** In the order of the response; null for a rejected item. */
  readonly products: readonly (Product | number | null)[];
  /** Products that neither the mirror had nor a page of the batch before this one. */
  readonly unknown: ReadonlySet<string>;
}

/** What a page changes, before anything is written. */
interface Draft {
  readonly ids: number[];
  readonly created: Map<string, { id: number; product: Product }>;
  readonly changed: Map<string, { known: KnownProduct; product: Product; change: Difference }>;
  /** Ids of products that are removed on the source's word. */
  readonly withdrawn: Set<number>;
}

/** Local start and source time of a pass's first request. */
interface Pinned {
  readonly local: number;
  readonly source: number;
}

export function createApplier(options: ApplierOptions): Applier {
  const { store, leased, clock, runId, ignoreFields, withdrawnAs, overlapMs } = options;
  let batch: WaitingPage[] = [];
  /** Products that pages in the batch may change: what the mirror has of them is not what it will have. */
  let unsettled = new Set<string>();
  let changing = 0;
  let chars = 0;
  let batchSince = 0;
  const pinned = new Map<number, Pinned>();
  for (const { pass, sourceTime } of store.runs.passes(runId)) {
    if (sourceTime === null) continue;
    pinned.set(pass, { local: store.runs.passStart(runId, pass) ?? clock.now(), source: sourceTime });
  }

  /** Ids that another window of this pass has read already, and which it shows as they were at a later moment. */
  function readLater({ task: { pass }, response }: WaitingPage): Set<number> {
    const later = new Set<number>();
    for (const ids of store.runs.idsReadAfter(runId, pass, momentOf(response))) for (const id of ids) later.add(id);
    return later;
  }

  function shelve({ page, response: { text: _text, ...response }, ...captured }: CapturedPage): WaitingPage {
    const unknown = new Set<string>();
    const products = store.read(() =>
      page.products.map((product) => {
        if (product === null || unsettled.has(product.vbid)) return product;
        const match = store.products.match(product.vbid, product.body);
        const asItIs = match !== undefined && match > 0;
        if (asItIs && !(product.withdrawn && withdrawnAs === 'removed')) return match;
        unsettled.add(product.vbid);
        if (match === undefined) unknown.add(product.vbid);
        return product;
      }),
    );
    const { envelope, rejected } = page;
    const doubt = page.doubt ?? doubtAge(response, overlapMs);
    return { ...captured, response, envelope, doubt, rejected, products, unknown };
  }

  function compare(captured: WaitingPage): Draft {
    const draft: Draft = { ids: [], created: new Map(), changed: new Map(), withdrawn: new Set() };
    let later: Set<number> | undefined;
    let nextId = 0;
    for (const product of captured.products) {
      if (product === null || typeof product === 'number') {
        draft.ids.push(product ?? 0);
        continue;
      }
      const known = captured.unknown.has(product.vbid) ? undefined : store.products.find(product.vbid);
      const gone = product.withdrawn && withdrawnAs === 'removed';
      if (known === undefined && gone) {
        draft.ids.push(draft.created.get(product.vbid)?.id ?? 0);
        continue;
      }
      if (known === undefined) {
        nextId ||= store.products.lastId() + 1;
        const id = draft.created.get(product.vbid)?.id ?? nextId++;
        draft.created.set(product.vbid, { id, product });
        draft.ids.push(id);
        continue;
      }
      draft.ids.push(known.id);
      // Twice on one page: the later one counts, even where it says again what the mirror has.
      draft.changed.delete(product.vbid);
      draft.withdrawn.delete(known.id);
      if (gone) {
        later ??= readLater(captured);
        if (!known.removed && !later.has(known.id)) draft.withdrawn.add(known.id);
        continue;
      }
      if (!known.removed && sameContent(known.body, product.body, ignoreFields)) continue;
      later ??= readLater(captured);
      if (later.has(known.id)) {
        // It is there, in the later read; what this one shows of it is out of date.
        draft.ids[draft.ids.length - 1] = 0;
        continue;
      }
      const change = difference(known.body, product.body);
      const same = change.before === '{}' && change.added.length === 0;
      if (known.removed || !same) draft.changed.set(product.vbid, { known, product, change });
    }
    return draft;
  }

  function write({ products, changes, removals }: KeeperWriter, { created, changed, withdrawn }: Draft): void {
    const now = clock.now();
    const records: NewChange[] = [];
    let seq = changes.lastSeq();
    let restored = 0;
    const firstSeq = seq + 1;
    const inserts = [...created.values()].map(({ id, product }) => ({ id, seq: ++seq, product }));
    products.insert(inserts, now);
    changes.appendCreated(firstSeq, inserts[0]?.id ?? 0, inserts.length, runId, now);
    for (const { known, product, change } of changed.values()) {
      seq++;
      if (known.removed) restored++;
      const op = known.removed ? 'restored' : 'updated';
      records.push({ seq, op, productId: known.id, prevSeq: known.changedSeq, ...change });
      products.update(known.id, product, seq, now);
    }
    changes.append(records, runId, now);
    if (inserts.length + restored > 0) products.addLiving(inserts.length + restored);
    if (withdrawn.size > 0) removals.remove(withdrawn, runId, now);
  }

  function checkpointOf(captured: WaitingPage, draft: Draft): Checkpoint {
    const { task, envelope, response, rejected, requests } = captured;
    const restored = [...draft.changed.values()].filter(({ known }) => known.removed).length;
    return {
      runId,
      pass: task.pass,
      ...task.window,
      numItems: envelope.numItems,
      totalPages: envelope.totalPages,
      requestedAt: momentOf(response),
      items: captured.products.length,
      created: draft.created.size,
      updated: draft.changed.size - restored,
      removed: draft.withdrawn.size,
      restored,
      rejected: rejected.length,
      requests,
      doubt: captured.doubt,
      seq: store.changes.lastSeq(),
      ids: draft.ids,
    };
  }

  /**
   * Pins the source time of the pass to its first response. A later one may show that this was too late: then the
   * source's clock was put back meanwhile, or several machines answer, whose clocks differ.
   */
  function pin({ runs }: KeeperWriter, { task: { pass }, envelope, response }: WaitingPage): void {
    const first = pinned.get(pass);
    const moment = momentOf(response);
    const elapsed = first === undefined ? 0 : Math.max(0, moment - first.local);
    const sourceTime = sourceTimeOf(response) - elapsed;
    if (first !== undefined && sourceTime >= first.source) return;
    runs.pinPass(runId, pass, sourceTime, envelope.numItems);
    if (pass === 0) runs.pinRun(runId, sourceTime);
    pinned.set(pass, { local: Math.min(first?.local ?? moment, moment), source: sourceTime });
  }

  function applyOne(writer: KeeperWriter, captured: WaitingPage): Applied | null {
    const { task, rejected } = captured;
    if (writer.runs.hasCheckpoint(runId, task.pass, task.window)) return null;
    const draft = compare(captured);
    if (draft.created.size + draft.changed.size + draft.withdrawn.size > 0) write(writer, draft);
    if (rejected.length > 0) writer.runs.addRejected(runId, task.pass, task.window, rejected);
    pin(writer, captured);
    const checkpoint = checkpointOf(captured, draft);
    writer.runs.addCheckpoint(checkpoint);
    const { ids: _ids, ...applied } = checkpoint;
    return applied;
  }

  function flush(olderThanMs = 0): readonly Applied[] {
    // Also where the clock was put back behind it.
    if (batch.length === 0 || Math.abs(clock.now() - batchSince) < olderThanMs) return [];
    const pages = batch;
    batch = [];
    changing = 0;
    chars = 0;
    unsettled = new Set();
    const applied = leased.write((writer) => {
      if (writer.runs.state(runId) === 'cancelled') {
        throw new CatchwordError('RUN_CANCELLED', `run ${runId} was cancelled`);
      }
      return pages.map((page) => applyOne(writer, page));
    });
    return applied.filter((checkpoint) => checkpoint !== null);
  }

  return {
    take: (captured) => {
      if (batch.length === 0) batchSince = clock.now();
      const waiting = shelve(captured);
      batch.push(waiting);
      // A body that is kept keeps the page's text alive, which it was cut from.
      if (waiting.products.some((product) => product !== null && typeof product === 'object')) {
        changing++;
        chars += captured.response.text.length;
      }
      const full = changing >= BATCH_PAGES || chars >= BATCH_CHARS || batch.length >= BATCH_ALL_PAGES;
      return full || !pinned.has(captured.task.pass) ? flush() : [];
    },
    flush,
  };
}
