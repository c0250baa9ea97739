import { revert } from '../catalog/content.ts';
import type { RecordedChange } from '../catalog/event.ts';
import type { RunKind } from '../catalog/run.ts';
import { CatchwordError } from '../errors.ts';
import type { ChangeRow, HeadedChange } from './changes.ts';
import type { Reader } from './reader.ts';

/** A product as it was right after one of its changes. */
export interface PastProduct {
  readonly change: Pick<RecordedChange, 'seq' | 'at' | 'op'>;
  readonly body: string;
}

/** Reads the change log together with the products as they were. */
export interface History {
  /** Changes after `seq`, oldest first, at most `limit`. */
  after(seq: number, limit: number): RecordedChange[];
  /**
   * Of the changes after `seq` up to `toSeq`, oldest first, at most `limit`: those that are their product's newest as
   * of `asOfSeq`. All of them up to `asOfSeq` together are the mirror as it was then.
   * @returns them, and how far the log was searched
   */
  newest(seq: number, toSeq: number, asOfSeq: number, limit: number): { changes: RecordedChange[]; to: number };
  /** The changes of a product that the log still holds, newest first. */
  of(vbid: string): RecordedChange[];
  /**
   * The product's newest change as of `seq`, and its text right after that change (of a removal: the text before it).
   * Null if the product did not exist yet.
   * @throws CatchwordError NOT_FOUND if the log no longer reaches back so far
   */
  asOf(vbid: string, seq: number): PastProduct | null;
}

/** Bodies to keep of one walk back from a product's current body: the next ones to be read are among them. */
const KEPT_BODIES = 64;
/** Bodies to keep of all products; the oldest are dropped first. */
const KEPT_IN_ALL = 1_024;

/** The item's text right after each change of `chain` (newest first), starting from its current text. */
function* bodiesBack(chain: readonly ChangeRow[], present: string): Iterable<[ChangeRow, string]> {
  let body = present;
  for (const change of chain) {
    yield [change, body];
    if (change.before !== null) body = revert(body, { before: change.before, added: change.added });
  }
}

export function createHistory(store: Reader): History {
  const kinds = new Map<number, RunKind>();
  /** By `seq`. What a product was right after a change never changes. */
  const kept = new Map<number, string>();

  function causeOf(runId: number): RunKind {
    const known = kinds.get(runId) ?? store.runs.get(runId)?.kind ?? 'full';
    kinds.set(runId, known);
    return known;
  }

  function recorded(change: ChangeRow, body: string | null): RecordedChange {
    const { seq, at, op, vbid, runId, before, added } = change;
    return { seq, at, op, vbid, runId, cause: causeOf(runId), before, added, body };
  }

  function keep(walked: readonly [number, string][]): void {
    for (const [seq, body] of walked.slice(-KEPT_BODIES)) kept.set(seq, body);
    for (const seq of kept.keys()) {
      if (kept.size <= KEPT_IN_ALL) break;
      kept.delete(seq);
    }
  }

  /** Reverts later changes one by one; usually there are none. */
  function bodyAfter({ seq, headSeq, headBody }: HeadedChange): string {
    const known = headSeq === seq ? headBody : kept.get(seq);
    if (known !== undefined) return known;
    const walked: [number, string][] = [];
    for (const [change, body] of bodiesBack(store.changes.chain(headSeq), headBody)) {
      if (change.seq === seq) {
        keep(walked);
        return body;
      }
      walked.push([change.seq, body]);
    }
    throw new Error(`the change log does not lead back from ${headSeq} to ${seq}`);
  }

  function headed(change: HeadedChange): RecordedChange {
    if (change.op === 'removed') return removed(change, change.headSeq, change.headBody);
    return recorded(change, bodyAfter(change));
  }

  /** The tombstone holds the last known product; once the product is restored, the record holds it. */
  function removed(change: ChangeRow, headSeq: number, headBody: string): RecordedChange {
    return recorded(headSeq === change.seq ? { ...change, before: headBody } : change, null);
  }

  /** Whether the change is its product's newest as of `asOf`. */
  function isNewestAsOf({ seq, headSeq }: HeadedChange, asOf: number): boolean {
    return headSeq === seq || store.changes.chain(headSeq).find((change) => change.seq <= asOf)?.seq === seq;
  }

  return {
    after: (seq, limit) => store.read(() => store.changes.after(seq, limit).map(headed)),
    newest: (seq, toSeq, asOf, limit) =>
      store.read(() => {
        const found = store.changes.newest(seq, toSeq, asOf, limit);
        const to = found.length === limit ? (found.at(-1)?.seq ?? toSeq) : toSeq;
        return { changes: found.filter((change) => isNewestAsOf(change, asOf)).map(headed), to };
      }),
    of: (vbid) =>
      store.read(() => {
        const product = store.products.get(vbid);
        if (product === undefined) return [];
        const chain = store.changes.chain(product.changedSeq);
        return [...bodiesBack(chain, product.body)].map(([change, body]) =>
          change.op === 'removed' ? removed(change, product.changedSeq, product.body) : recorded(change, body),
        );
      }),
    asOf: (vbid, seq) =>
      store.read(() => {
        const product = store.products.get(vbid);
        if (product === undefined) return null;
        const chain = store.changes.chain(product.changedSeq);
        for (const [change, body] of bodiesBack(chain, product.body)) {
          if (change.seq <= seq) return { change, body };
        }
        if (chain.at(-1)?.prevSeq != null) {
          throw new CatchwordError('NOT_FOUND', `the change log no longer holds ${vbid} as of change ${seq}`, {
            hint: `Changes up to ${store.changes.prunedTo()} were pruned (CATCHWORD_LOG_RETENTION); use a later change.`,
          });
        }
        return null;
      }),
  };
}

/**
 * Checks that the log has reached `seq`: a reader that waits beyond its end would miss what comes before.
 * @param name the parameter to name in the error
 * @returns `seq`
 * @throws CatchwordError USAGE
 */
export function requireKnownSeq(name: string, seq: number, lastSeq: number): number {
  if (seq <= lastSeq) return seq;
  throw new CatchwordError('USAGE', `${name}: ${seq} is beyond the newest change, which is ${lastSeq}`, {
    hint: 'It belongs to another mirror, or to this one before a backup was restored. Read again from 0.',
  });
}
