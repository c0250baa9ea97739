import { revertMembers } from '@catchword/catalog/content';
import { objectMembers, objectText } from '@catchword/catalog/json-text';
import type { ChangeRow, HeadedChange } from '../rows/changes.ts';
import type { Reader } from '../schema/reader.ts';

/*
 * A record of the log holds what was before it, so a former body is made by walking back from a newer one. A reader of the
 * log asks for the bodies of a product in the other direction. To walk from the newest body to each of them would cost the
 * square of their number. So each walk keeps some of the bodies that it passes, evenly spaced; the next bodies are reached
 * from the nearest one, by a walk as long as that space, which again keeps some. Each record is read as often as there are
 * levels: twice if a product has 20,000 changes, three times if it has ten million.
 */

const KEPT_OF_WALK = 256;
/** Characters to keep of one walk, but always one body. For safety: a body may have millions. */
const KEPT_OF_WALK_CHARS = 4_000_000;
/**
 * Characters to keep of all walks; those of the walk that was used longest ago are dropped first. For safety. A walk is
 * used by each finer one that starts at one of its bodies, so the coarse ones stay.
 */
const KEPT_CHARS = 16_000_000;
/** What a body takes besides its text, as characters. */
const BODY_CHARS = 500;
/** Records of one product that are read at once: each may hold a large field. */
const STEP = 64;

/** The records of a product after `afterSeq` up to `upToSeq`, newest first. They are read as they are taken. */
export function* changesBack(store: Reader, productId: number, upToSeq: number, afterSeq = 0): Iterable<ChangeRow> {
  for (let before = upToSeq + 1; ; ) {
    const batch = store.changes.ofProduct(productId, before, STEP, afterSeq);
    yield* batch;
    const last = batch.at(-1);
    if (last === undefined || batch.length < STEP) return;
    before = last.seq;
  }
}

/** What a product was right after a change, which never changes. */
interface Kept {
  readonly seq: number;
  readonly body: string;
}

/** What was kept of a walk, oldest first. */
interface Walk {
  readonly productId: number;
  readonly bodies: readonly Kept[];
  readonly chars: number;
}

const charsOf = (kept: readonly Kept[]): number => kept.reduce((sum, { body }) => sum + body.length + BODY_CHARS, 0);

/** Keeps evenly spaced bodies of a walk whose length is not known. */
function createSamples() {
  let samples: Kept[] = [];
  let space = 1;
  let passed = 0;
  return {
    pass: (seq: number, body: () => string): void => {
      passed++;
      if (passed % space !== 0) return;
      samples.push({ seq, body: body() });
      while (samples.length > KEPT_OF_WALK || (samples.length > 1 && charsOf(samples) > KEPT_OF_WALK_CHARS)) {
        samples = samples.filter((_, index) => index % 2 === 1);
        space *= 2;
      }
    },
    /** Oldest first. */
    all: (): Kept[] => samples.reverse(),
  };
}

/** Keeps walks, the one that was used last at the end. */
function createKeptWalks() {
  const all = new Set<Walk>();
  const byProduct = new Map<number, Set<Walk>>();
  let chars = 0;

  function drop(walk: Walk): void {
    const own = byProduct.get(walk.productId);
    all.delete(walk);
    own?.delete(walk);
    if (own?.size === 0) byProduct.delete(walk.productId);
    chars -= walk.chars;
  }

  return {
    /** Finds the oldest body of a product that is not older than `seq`. */
    nearest: (productId: number, seq: number): Kept | undefined => {
      let nearest: Kept | undefined;
      let used: Walk | undefined;
      for (const walk of byProduct.get(productId) ?? []) {
        const found = walk.bodies.find((kept) => kept.seq >= seq);
        if (found === undefined || (nearest !== undefined && found.seq >= nearest.seq)) continue;
        nearest = found;
        used = walk;
      }
      if (used !== undefined) {
        all.delete(used);
        all.add(used);
      }
      return nearest;
    },
    keep: (productId: number, bodies: readonly Kept[]): void => {
      if (bodies.length === 0) return;
      const walk = { productId, bodies, chars: charsOf(bodies) };
      const own = byProduct.get(productId) ?? new Set();
      byProduct.set(productId, own.add(walk));
      all.add(walk);
      chars += walk.chars;
      for (const oldest of all) {
        if (chars <= KEPT_CHARS) break;
        drop(oldest);
      }
    },
  };
}

/** Makes a function that returns the body of a change's product right after the change (of a removal: before it). */
export function createBodyHistory(store: Reader): (change: HeadedChange) => string {
  const walks = createKeptWalks();

  return ({ seq, productId, headSeq, headBody }) => {
    if (seq === headSeq) return headBody;
    const from = walks.nearest(productId, seq) ?? { seq: headSeq, body: headBody };
    if (from.seq === seq) return from.body;
    const members = objectMembers(from.body);
    const samples = createSamples();
    let reached: number | null = from.seq;
    for (const change of changesBack(store, productId, from.seq, seq)) {
      reached = change.prevSeq;
      if (change.seq !== from.seq) samples.pass(change.seq, () => objectText(members));
      if (change.before !== null) revertMembers(members, { before: change.before, added: change.added });
    }
    if (reached !== seq) throw new Error(`the change log does not lead back from ${headSeq} to ${seq}`);
    walks.keep(productId, samples.all());
    return objectText(members);
  };
}
