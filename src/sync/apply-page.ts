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
 * A page that changes something is one transaction: products, change records and the checkpoint, or nothing. A page
 * that changes nothing has only its checkpoint to write; such checkpoints wait, at most `HELD_CHECKPOINTS` of them for
 * at most `HELD_MS`, and go into one transaction, because SQLite writes whole 16-KB pages: one checkpoint at a time would
 * write 50 KB for each page of a night in which nothing happened. A crash before that costs reading these pages again.
 */
export interface Applier {
  /**
   * @returns the checkpoint, or null where the window had one already
   * @throws CatchwordError LEASE_LOST, RUN_CANCELLED, MIRROR_WRITE_FAILED; then nothing of the page was written
   */
  apply(captured: CapturedPage): Checkpoint | null;
  /** Writes what waits. Throws as `apply` does. */
  flush(): void;
}

const HELD_CHECKPOINTS = 16;
const HELD_MS = 10_000;

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
  let held: Checkpoint[] = [];
  let heldSince = 0;
  const pinned = new Set(store.runs.passes(runId).flatMap((p) => (p.sourceTime === null ? [] : [p.pass])));

  function guard(): void {
    store.lease.check(epoch);
    if (store.runs.state(runId) === 'cancelled')
      throw new CatchwordError('RUN_CANCELLED', `run ${runId} was cancelled`);
  }

  function isHeld({ task: { pass, window } }: CapturedPage): boolean {
    return held.some((c) => c.pass === pass && c.page === window.page && c.perPage === window.perPage);
  }

  /** Ids that a request of this pass which started later than this one has read already. */
  function readLater({ task: { pass }, response: { requestedAt } }: CapturedPage): Set<number> {
    const later = new Set<number>();
    for (const ids of store.runs.idsReadAfter(runId, pass, requestedAt)) for (const id of ids) later.add(id);
    for (const c of held) if (c.pass === pass && c.requestedAt > requestedAt) for (const id of c.ids) later.add(id);
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
    store.runs.updatePass(runId, pass, sourceTime, page.envelope.numItems);
    if (pass === 0) store.runs.beginReading(runId, sourceTime);
  }

  function writeHeld(): void {
    for (const checkpoint of held) store.runs.addCheckpoint(checkpoint);
  }

  return {
    apply: (captured) => {
      const { task, page } = captured;
      let wrote = false;
      const checkpoint = store.write(() => {
        guard();
        if (isHeld(captured) || store.runs.hasCheckpoint(runId, task.pass, task.window)) return null;
        const draft = compare(captured);
        const made = checkpointOf(captured, draft);
        // The first page of a pass is written at once: it holds the source time on which the watermark rests.
        const first = !pinned.has(task.pass);
        const quiet = made.created + made.updated + made.restored + made.rejected === 0 && !first;
        const now = clock.now();
        if (quiet && held.length < HELD_CHECKPOINTS && (held.length === 0 || now - heldSince < HELD_MS)) {
          if (held.length === 0) heldSince = now;
          held.push(made);
          return made;
        }
        write(draft);
        if (page.rejected.length > 0) store.runs.addRejected(runId, task.pass, task.window, page.rejected);
        if (first) pin(captured);
        writeHeld();
        store.runs.addCheckpoint(made);
        wrote = true;
        return made;
      });
      if (wrote) {
        held = [];
        pinned.add(task.pass);
      }
      return checkpoint;
    },
    flush: () => {
      if (held.length === 0) return;
      store.write(() => {
        guard();
        writeHeld();
      });
      held = [];
    },
  };
}
