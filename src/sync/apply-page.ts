import type { Clock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import type { Logger } from '@catchword/base/log';
import { publish } from '@catchword/base/telemetry';
import type { CapturedPage } from '@catchword/catalog/page-types';
import { type Clocks, momentOf, sourceTimeOf } from '../proof/watermark.ts';
import type { NewChange } from '../store/rows/changes.ts';
import type { Checkpoint } from '../store/rows/runs.ts';
import type { KeeperWriter, LeasedKeeper } from '../store/schema/writers.ts';
import { createAppliedReads } from './applied-reads.ts';
import type { Unreadable } from './failed-window.ts';
import { createUnchangedItems } from './fast/unchanged-items.ts';
import { createLossCounter, noteLosses } from './loss-brake.ts';
import {
  checkpointOf,
  type Draft,
  type DraftContext,
  draftPage,
  newProducts,
  type WaitingPage,
} from './plan-page-write.ts';
import type { RunSettings } from './run-settings.ts';

/** A checkpoint that was written, without its ids, so that memory stays flat. */
export type Applied = Omit<Checkpoint, 'ids'>;

/** Twice as many would write 12% less in a first load, and block what else this thread does for twice as long. */
const BATCH_PAGES = 64;
/** Large products fill a batch sooner, so that memory stays flat. */
const BATCH_BYTES = 8_000_000;
/** Items that could not be used, rejected or shown in part, that are kept of one run; the others are only counted. */
const REJECTED_MOST = 1_000;

interface ApplierOptions extends Omit<DraftContext, 'reads' | 'twice'>, Pick<RunSettings, 'lossLimit'> {
  readonly leased: LeasedKeeper;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Writes what a page changes. @returns false if it would create a product that the mirror has; then nothing was written */
function write({ products, changes, removals }: KeeperWriter, draft: Draft, runId: number, now: number): boolean {
  const { created, changed, withdrawn, restored, items, rows } = draft;
  const records: NewChange[] = [];
  let seq = changes.lastSeq();
  const parts = rows.map((part) => {
    const first = seq + 1;
    seq += part.to - part.from + 1;
    return { ...part, seq: first };
  });
  if (items !== null && !products.insertRows(items, parts, now)) return false;
  for (const { id, seq: first, from, to } of parts) changes.appendCreated(first, id, to - from + 1, runId, now);
  const firstSeq = seq + 1;
  const inserts = [...created.values()].map(({ id, product }) => ({ id, seq: ++seq, product }));
  products.insert(inserts, now);
  changes.appendCreated(firstSeq, inserts[0]?.id ?? 0, inserts.length, runId, now);
  for (const { known, product, change } of changed.values()) {
    const op = known.removed ? 'restored' : 'updated';
    records.push({ seq: ++seq, op, productId: known.id, prevSeq: known.changedSeq, ...change });
    products.update(known, product, seq, now);
  }
  changes.append(records, runId, now);
  const living = newProducts(draft) + restored;
  if (living > 0) products.addLiving(living);
  if (withdrawn.size > 0) removals.remove(withdrawn, runId, now);
  return true;
}

function createPageWriter(context: DraftContext) {
  /** Whether a product that was taken for new was in the mirror: small windows overlap by a larger share than large ones. */
  let lookUpAll = false;

  function tryToWrite(writer: KeeperWriter, captured: WaitingPage, now: number): Draft | null {
    const draft = draftPage(context, captured, lookUpAll);
    const isUnchanged = newProducts(draft) + draft.changed.size + draft.withdrawn.size === 0;
    return isUnchanged || write(writer, draft, context.runId, now) ? draft : null;
  }

  return (writer: KeeperWriter, captured: WaitingPage, now: number): Draft => {
    const guessed = tryToWrite(writer, captured, now);
    if (guessed !== null) return guessed;
    lookUpAll = true;
    const draft = tryToWrite(writer, captured, now);
    if (draft === null) throw new Error(`page ${captured.task.window.page} creates a product that the mirror has`);
    return draft;
  };
}

function keepRejected({ runs }: KeeperWriter, runId: number, { task, rejected }: WaitingPage): void {
  const room = Math.max(0, REJECTED_MOST - runs.counts(runId).rejected - runs.inPart(runId).items);
  runs.addRejected(runId, task.pass, task.window, rejected.slice(0, room));
}

function noteInPart({ runs }: KeeperWriter, runId: number, { partial, leftOut, shownAgain }: Draft): void {
  if (partial.length + shownAgain.length === 0) return;
  const known = runs.inPart(runId);
  runs.noteInPart(runId, {
    items: known.items + partial.length,
    leftOut: [...new Set([...known.leftOut, ...leftOut])],
    shown: [...new Set([...known.shown, ...shownAgain])],
  });
}

function writeUnreadable(
  { runs, changes }: KeeperWriter,
  runId: number,
  pass: number,
  { window, doubt, numItems }: Unreadable,
  requestedAt: number,
): Applied {
  const none = { items: 0, created: 0, updated: 0, removed: 0, restored: 0, rejected: 0, requests: 0 };
  const about = { runId, pass, ...window, ...none, numItems, totalPages: 0 };
  const applied = { ...about, doubt, requestedAt, seq: changes.lastSeq() };
  runs.addCheckpoint({ ...applied, ids: [] });
  return applied;
}

/**
 * Applies pages of one run. A page is written with its changes and its checkpoint in one transaction. Pages that arrive close
 * together share one, because SQLite writes whole pages: a million products with random keys, applied 1,000 at a time, wrote
 * 57 GB (measured), and `BATCH_PAGES` pages at a time a small part of that. After a crash they are read again.
 */
export function createPageApplier(options: ApplierOptions) {
  const { store, leased, clock, log, runId } = options;
  const reads = createAppliedReads(store, runId);
  const hasList = store.runs.get(runId)?.kind === 'full';
  const [before] = store.recentRuns.read('full', 1);
  const twice = new Set(before && store.runs.get(before.id)?.evidence?.twice?.vbids);
  const context: DraftContext = { ...options, reads, hasList, twice, notInDeltas: store.runs.leftOut() };
  const writePage = createPageWriter(context);
  const countLosses = createLossCounter(options);
  const unchanged = createUnchangedItems(store, options);
  let batch: WaitingPage[] = [];
  let [bytes, batchSince] = [0, 0];
  /** Local start and source time of each pass's first request. */
  const pinned = new Map<number, Clocks>();
  for (const { pass, sourceTime } of store.runs.passes(runId)) {
    if (sourceTime === null) continue;
    pinned.set(pass, { local: store.runs.passStart(runId, pass) ?? clock.now(), source: sourceTime });
  }

  function shelve({ page, ...captured }: CapturedPage): WaitingPage {
    const { envelope, rejected, items } = page;
    const ids = unchanged.find(page);
    for (const { position } of rejected) ids[position] = 0;
    return { ...captured, envelope, doubt: page.doubt, rejected, ids, items: ids.includes(null) ? items : null };
  }

  /**
   * Pins the source time of the pass to its first response. A later response may move it back: then the source's clock
   * was put back meanwhile, or several machines with different clocks answer.
   */
  function pin({ runs }: KeeperWriter, { task: { pass }, envelope, response }: WaitingPage): void {
    const first = pinned.get(pass);
    const moment = momentOf(response);
    const elapsed = first === undefined ? 0 : Math.max(0, moment - first.local);
    const source = sourceTimeOf(response) - elapsed;
    if (first !== undefined && source >= first.source) return;
    const clocks = { source, local: Math.min(first?.local ?? moment, moment) };
    runs.noteResponse({ runId, pass, sourceTime: source, numItems: envelope.numItems });
    if (pass === 0) runs.setReading({ id: runId, ...clocks });
    pinned.set(pass, clocks);
  }

  function applyOne(writer: KeeperWriter, captured: WaitingPage, lost: Map<string, number>): Applied | null {
    const { task, rejected } = captured;
    if (writer.runs.hasCheckpoint(runId, task.pass, task.window)) return null;
    const draft = writePage(writer, captured, clock.now());
    countLosses(lost, draft);
    const unused = [...rejected, ...draft.partial];
    if (unused.length > 0) keepRejected(writer, runId, { ...captured, rejected: unused });
    noteInPart(writer, runId, draft);
    pin(writer, captured);
    const checkpoint = checkpointOf(context, captured, draft);
    reads.add(task, checkpoint.requestedAt, draft.ids);
    writer.runs.addCheckpoint(checkpoint);
    const { ids: _ids, ...applied } = checkpoint;
    return applied;
  }

  /** Applies the batch, if its first page arrived `olderThanMs` ago or earlier. Returns and throws as `take` does. */
  function flush(olderThanMs = 0): readonly Applied[] {
    // abs: the clock may have been put back since.
    if (batch.length === 0 || Math.abs(clock.now() - batchSince) < olderThanMs) return [];
    const pages = batch;
    batch = [];
    bytes = 0;
    unchanged.reset();
    const start = performance.now();
    const { applied, unusual } = leased.write((writer) => {
      if (writer.runs.state(runId) === 'cancelled') {
        throw new CatchwordError('RUN_CANCELLED', `run ${runId} was cancelled`);
      }
      const from = writer.changes.lastSeq() + 1;
      const lost = new Map<string, number>();
      const applied = pages.map((page) => applyOne(writer, page, lost));
      return { applied, unusual: noteLosses(writer, runId, from, lost, options, clock.now()) };
    });
    if (unusual !== null) {
      const { from: seq, field, products, living, earlier } = unusual;
      const who = earlier === undefined ? 'it' : 'it and the runs of 24 hours';
      const reason = `${who} emptied ${field} of ${products} of ${living} products, more than CATCHWORD_LOSS_LIMIT allows`;
      log.warn({ code: 'RUN_UNUSUAL', run: runId, seq, reason, hint: `npx catchword run ${runId}` }, 'run is unusual');
    }
    publish({ of: 'apply', ms: performance.now() - start });
    return applied.filter((checkpoint) => checkpoint !== null);
  }

  return {
    /**
     * Adds a page to the batch, and applies the batch when it is full, or when the page is the first of its pass.
     * @returns the pages that this call applied
     * @throws CatchwordError LEASE_LOST, RUN_CANCELLED, MIRROR_WRITE_FAILED; the batch was not written then
     */
    take: (captured: CapturedPage): readonly Applied[] => {
      if (batch.length === 0) batchSince = clock.now();
      const waiting = shelve(captured);
      batch.push(waiting);
      if (waiting.items !== null) bytes += waiting.items.bytes.length;
      for (const { body } of waiting.rejected) bytes += body.length;
      const full = batch.length >= BATCH_PAGES || bytes >= BATCH_BYTES;
      return full || !pinned.has(captured.task.pass) ? flush() : [];
    },
    flush,
    noteUnreadable: (pass: number, unreadable: Unreadable): Applied =>
      leased.write((writer) => writeUnreadable(writer, runId, pass, unreadable, clock.now())),
  };
}

export type Applier = ReturnType<typeof createPageApplier>;
