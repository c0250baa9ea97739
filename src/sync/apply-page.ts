import { type Difference, difference, type Pointer, sameContent } from '../catalog/content.ts';
import type { CapturedPage } from '../catalog/page.ts';
import type { Product } from '../catalog/product.ts';
import { sourceTimeOf } from '../catalog/watermark.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError } from '../errors.ts';
import type { NewChange } from '../store/changes.ts';
import type { KnownProduct, NewProduct } from '../store/products.ts';
import type { Checkpoint } from '../store/runs.ts';
import type { Store } from '../store/store.ts';

/**
 * Applies pages of one run.
 *
 * What a page changes, its change records and its checkpoint are written in one transaction, or nothing of them is.
 * Pages that come close together share a transaction, because SQLite writes whole 16-KB pages: products whose keys are
 * in no order touch an index page each, and a million of them applied 1,000 at a time wrote 57 GB (measured); applied
 * `BATCH_PAGES` pages at a time they write 3 GB. A checkpoint of a page without changes costs 1.5 KB in a batch and
 * 50 KB alone. A crash costs reading again what was in the batch.
 */
export interface Applier {
  /**
   * Takes a page into the batch, and applies the batch when it is full. The first page of a pass is applied at once: it
   * pins the source time.
   * @returns checkpoints of what was applied by this call
   * @throws CatchwordError LEASE_LOST, RUN_CANCELLED, MIRROR_WRITE_FAILED; then nothing of the batch was written
   */
  take(captured: CapturedPage): readonly Checkpoint[];
  /** Applies the batch; returns and throws as `take` does. With `olderThanMs`, only if it waits for so long. */
  flush(olderThanMs?: number): readonly Checkpoint[];
}

const BATCH_PAGES = 32;
/** Of text: large products fill a batch sooner, so that memory stays flat. */
const BATCH_CHARS = 8_000_000;

export interface ApplierOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly runId: number;
  readonly epoch: number;
  readonly ignoreFields: readonly Pointer[];
}

/** What a page changes, before anything is written. */
interface Draft {
  readonly ids: number[];
  readonly created: Map<string, { id: number; product: Product }>;
  readonly changed: Map<string, { known: KnownProduct; product: Product; change: Difference }>;
}

export function createApplier({ store, clock, runId, epoch, ignoreFields }: ApplierOptions): Applier {
  let batch: CapturedPage[] = [];
  let batchChars = 0;
  let batchSince = 0;
  const pinned = new Set(store.runs.passes(runId).flatMap((p) => (p.sourceTime === null ? [] : [p.pass])));

  /** Ids that a request of this pass which started later than this one has read already. */
  function readLater({ task: { pass }, response: { requestedAt } }: CapturedPage): Set<number> {
    const later = new Set<number>();
    for (const ids of store.runs.idsReadAfter(runId, pass, requestedAt)) for (const id of ids) later.add(id);
    return later;
  }

  function compare(captured: CapturedPage): Draft {
    const draft: Draft = { ids: [], created: new Map(), changed: new Map() };
    let later: Set<number> | undefined;
    let nextId = 0;
    for (const product of captured.page.products) {
      if (product === null) {
        draft.ids.push(0);
        continue;
      }
      const known = store.products.find(product.vbid);
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
      if (!known.removed && sameContent(known.body, product.body, ignoreFields)) continue;
      later ??= readLater(captured);
      if (later.has(known.id)) continue;
      const change = difference(known.body, product.body);
      const same = change.before === '{}' && change.added.length === 0;
      if (known.removed || !same) draft.changed.set(product.vbid, { known, product, change });
    }
    return draft;
  }

  function write({ created, changed }: Draft): void {
    const now = clock.now();
    const records: NewChange[] = [];
    const inserts: NewProduct[] = [];
    let seq = store.changes.lastSeq();
    let restored = 0;
    for (const { id, product } of created.values()) {
      seq++;
      inserts.push({ id, seq, product });
      records.push({ seq, op: 'created', productId: id, prevSeq: null, before: null, added: [] });
    }
    store.products.insert(inserts, now);
    for (const { known, product, change } of changed.values()) {
      seq++;
      if (known.removed) restored++;
      const op = known.removed ? 'restored' : 'updated';
      records.push({ seq, op, productId: known.id, prevSeq: known.changedSeq, ...change });
      store.products.update(known.id, product, seq, now);
    }
    store.changes.append(records, runId, now);
    if (inserts.length + restored > 0) store.products.addLiving(inserts.length + restored);
  }

  function checkpointOf({ task, page, response, requests }: CapturedPage, draft: Draft): Checkpoint {
    const restored = [...draft.changed.values()].filter(({ known }) => known.removed).length;
    return {
      runId,
      pass: task.pass,
      ...task.window,
      numItems: page.envelope.numItems,
      totalPages: page.envelope.totalPages,
      requestedAt: response.requestedAt,
      items: page.products.length,
      created: draft.created.size,
      updated: draft.changed.size - restored,
      restored,
      rejected: page.rejected.length,
      requests,
      ids: draft.ids,
    };
  }

  function pin({ task: { pass }, page, response }: CapturedPage): void {
    const sourceTime = sourceTimeOf(response);
    store.runs.pinPass(runId, pass, sourceTime, page.envelope.numItems);
    if (pass === 0) store.runs.beginReading(runId, sourceTime);
  }

  function applyOne(captured: CapturedPage): Checkpoint | null {
    const { task, page } = captured;
    if (store.runs.hasCheckpoint(runId, task.pass, task.window)) return null;
    const draft = compare(captured);
    if (draft.created.size + draft.changed.size > 0) write(draft);
    if (page.rejected.length > 0) store.runs.addRejected(runId, task.pass, task.window, page.rejected);
    if (!pinned.has(task.pass)) pin(captured);
    const checkpoint = checkpointOf(captured, draft);
    store.runs.addCheckpoint(checkpoint);
    return checkpoint;
  }

  function flush(olderThanMs = 0): readonly Checkpoint[] {
    if (batch.length === 0 || clock.now() - batchSince < olderThanMs) return [];
    const pages = batch;
    batch = [];
    batchChars = 0;
    const applied = store.write(() => {
      store.lease.check(epoch);
      if (store.runs.state(runId) === 'cancelled')
        throw new CatchwordError('RUN_CANCELLED', `run ${runId} was cancelled`);
      return pages.map(applyOne);
    });
    for (const { task } of pages) pinned.add(task.pass);
    return applied.filter((checkpoint) => checkpoint !== null);
  }

  return {
    take: (captured) => {
      if (batch.length === 0) batchSince = clock.now();
      batch.push(captured);
      batchChars += captured.response.text.length;
      const full = batch.length >= BATCH_PAGES || batchChars >= BATCH_CHARS;
      return full || !pinned.has(captured.task.pass) ? flush() : [];
    },
    flush,
  };
}
