import type { Random } from '@catchword/sandbox/catalog/random';
import { type Move, type MovingList, PLACES, type Place, rearrange } from './moving-list.ts';

/* Moves that hide a product from the window that is read next, and how the adversary chooses among them. */

/** What a window of the run's list held when the source answered. */
export interface Read {
  readonly pass: number;
  readonly from: number;
  readonly ids: readonly number[];
}

/**
 * Scenes that random moves seldom make; at other times it plays `any`.
 * - `late`: a product that no window has shown moves to where the list was read. Deltas tell of it late, and then it slips
 *   out of a settling delta of several pages.
 * - `gone`: a change slips out of a delta of products that were withdrawn before.
 */
export const SCENES = ['late', 'gone'] as const;
export type Scene = (typeof SCENES)[number] | 'any';

/** A list and settings with which a scene can happen; so many products in a seam may seem to stand still. */
export const STAGES = {
  late: {
    places: ['updated-desc', 'free'],
    newestFirst: true,
    isLate: true,
    withdrawnAs: 'updated',
    seam: 5,
    deltas: 0.2,
  },
  gone: { places: PLACES, newestFirst: false, isLate: false, withdrawnAs: 'removed', seam: 5, deltas: 0.9 },
} as const satisfies Record<(typeof SCENES)[number], object>;

/** What it does in one run. */
export interface Intent {
  readonly scene: Scene;
  /** Edits change only the time of change. */
  readonly touch: boolean;
  /** Edits change only a field, which settings may ignore. */
  readonly stock: boolean;
  /** What happens to the products that it moved past the hidden one, before a delta tells. */
  readonly fate: 'keep' | 'erase' | 'spoil';
  readonly removal: 'erase' | 'withdraw';
  /** How many plans it compares before each answer. */
  readonly tries: number;
  /** How much it likes windows that hold the same products at the same places. */
  readonly sameness: number;
  /** How often it moves something that serves no plan. */
  readonly noise: number;
  /** After so many requests it rests, so that most runs end before they have repaired as often as they may. */
  readonly patience: number;
}

/** What the adversary knows and remembers of one run. */
export interface Game {
  readonly list: MovingList;
  readonly place: Place;
  readonly random: Random;
  readonly perPage: number;
  readonly seam: number;
  /** In a tie only the total tells that a product was not read, so it must not change meanwhile: see the document. */
  readonly mayResize: boolean;
  intent: Intent;
  /** The product that nothing touches; 0: none. */
  hidden: number;
  reads: Read[];
  /** Products that an answer of the run has shown. */
  shown: Set<number>;
  /** Products that it moved past the hidden one. */
  moved: Set<number>;
  touched: Set<number>;
  /** Products that it touched and that a delta has shown since. */
  told: Set<number>;
  touches: number;
  /** In the scene `late`: the product that moved, after that it moved again; 0: none yet. */
  fled: number;
  /** In a scene: whether it has moved a delta of the run. */
  hasSlipped: boolean;
  deltaPass: number;
  /** The end of what the newest delta has shown. */
  deltaEnd: number;
  /** Requests of the run so far. */
  asked: number;
}

/** More products that are touched, but not changed, at once would break assumption 5 of docs/page-drift.md. */
const TOUCHES = 4;
/** Products that it moves past the hidden one at most. */
const JOINTS = 6;
/** The number of products below which it erases none. */
export const LEAST = 8;

/** A whole number from 0 on. */
export function wholeBelow(random: Random, below: number): number {
  return Math.floor(random() * below);
}

/** @returns one of the values; undefined if it gets none */
export function pickOf<T>(random: Random, values: readonly T[]): T | undefined {
  return values[wholeBelow(random, values.length)];
}

/** @param isPrompt whether deltas show it at once */
export function make(game: Game, moves: readonly Move[], isPrompt = false): void {
  const { list } = game;
  for (const move of moves) {
    if (move.kind === 'edit' && move.touch) game.touched.add(move.id);
    list.happen(move, isPrompt);
  }
}

/** An edit that changes the content, which every window and delta shows. */
export function rewrite(id: number, after: number | null = null): Move {
  return { kind: 'edit', id, after, touch: false };
}

/** An edit with the content of the intent, as far as it is allowed. */
export function edit(game: Game, id: number, after: number | null): Move {
  const touch = game.intent.touch && game.touches < TOUCHES && game.touches++ >= 0;
  return { kind: 'edit', id, after, touch, stock: game.intent.stock };
}

function removed(game: Game, id: number): Move {
  return { kind: game.touched.has(id) ? 'withdraw' : game.intent.removal, id };
}

/** Lists a product again behind this one, as one that is touched. */
export function restored(game: Game, after: number): Move[] {
  const { list, random, mayResize } = game;
  if (!mayResize || game.touches >= TOUCHES) return [];
  const gone = [...list.lives].flatMap(([id, { livingSince }]) => (livingSince === null ? [id] : []));
  const id = pickOf(random, gone.slice(-5));
  if (id === undefined) return [];
  game.touches++;
  game.touched.add(id);
  return [{ kind: 'restore', id, after }];
}

export function isFree(game: Game, id: number): boolean {
  return id !== game.hidden;
}

/** The window that was read last next to this offset. */
function neighbour(game: Game, from: number): Read | undefined {
  return game.reads
    .filter(({ ids }) => ids.length > 0)
    .sort((a, b) => Math.abs(a.from - from) - Math.abs(b.from - from) || b.pass - a.pass)[0];
}

/** Moves products from before the hidden one past it, so that it slips out of the window at its start. */
function slip(game: Game, order: readonly number[], from: number): Move[] {
  const { random, mayResize } = game;
  const at = order.indexOf(game.hidden);
  const before = order.slice(0, at);
  const known = new Set(neighbour(game, from)?.ids ?? []);
  const need = Math.max(1, at - from + 1);
  const joints = before.filter((id) => known.has(id) && isFree(game, id)).slice(-(1 + wholeBelow(random, JOINTS)));
  const moves: Move[] = [];
  let last = game.hidden;
  for (const id of joints) {
    moves.push(edit(game, id, last));
    last = id;
  }
  const others = before.filter((id) => !joints.includes(id) && isFree(game, id));
  const gone = mayResize ? Math.max(random() < 0.7 ? 1 : 0, need - joints.length) : 0;
  for (let n = 0; n < gone && others.length > 0 && order.length - n > LEAST; n++) {
    const [id = 0] = others.splice(wholeBelow(random, others.length), 1);
    moves.push(random() < 0.8 ? removed(game, id) : edit(game, id, null));
  }
  return moves;
}

/** Edits in turn everything that two windows share, and what follows, so that it keeps its places. */
function slipInTurn(game: Game, order: readonly number[], from: number): Move[] {
  const { random, mayResize, place } = game;
  const at = order.indexOf(game.hidden);
  const tail = order.slice(from).filter((id) => isFree(game, id));
  const passed = place === 'free' ? tail.filter((id) => order.indexOf(id) < at + 1 + wholeBelow(random, 3)) : tail;
  const gone = mayResize ? order.slice(0, from).filter((id) => isFree(game, id)) : [];
  const first = pickOf(random, gone);
  const moves: Move[] = first === undefined ? [] : [removed(game, first)];
  let last = game.hidden;
  for (const id of passed) {
    moves.push({ kind: 'edit', id, after: last, touch: false, stock: game.intent.stock });
    last = id;
  }
  return moves;
}

/** Moves products, or new ones, before the hidden one, so that it slips out of the window at its end. */
function slipBack(game: Game, order: readonly number[], to: number): Move[] {
  const { list, random, mayResize } = game;
  const at = order.indexOf(game.hidden);
  const previous = order[at - 1] ?? null;
  const behind = order.slice(at + 1).filter((id) => isFree(game, id));
  const moves: Move[] = [];
  for (let n = Math.max(1, to - at) + wholeBelow(random, 2); n > 0; n--) {
    const id = behind.shift();
    if (id !== undefined && random() < 0.8) moves.push(edit(game, id, previous));
    else if (mayResize) moves.push({ kind: 'create', id: list.newId(), after: previous });
  }
  return moves;
}

/** Moves a product that no window shows to where the list was read, while another one leaves that. */
export function flee(game: Game, order: readonly number[], from: number): Move[] {
  const { random, mayResize } = game;
  const id = pickOf(
    random,
    order.slice(from).filter((one) => !game.shown.has(one)),
  );
  const gone = pickOf(
    random,
    order.slice(0, from).filter((one) => isFree(game, one)),
  );
  if (id === undefined || gone === undefined || !mayResize || order.length <= LEAST) return [];
  return [edit(game, id, pickOf(random, order.slice(0, from)) ?? null), removed(game, gone)];
}

/** Moves products of a delta, so that one slips out of its windows while they seem to stand still. */
export function slipInDelta(game: Game, told: readonly number[], start: number): Move[] {
  const { list, random, mayResize } = game;
  const gone = pickOf(
    random,
    told.slice(0, start).filter((id) => isFree(game, id) && list.list.includes(id)),
  );
  const moves: Move[] = gone === undefined || !mayResize || list.list.length <= LEAST ? [] : [removed(game, gone)];
  const next = game.fled > 0 ? game.fled : pickOf(random, told.slice(game.deltaEnd));
  const passed = list.newestFirst ? [next] : told.slice(start, game.deltaEnd);
  for (const id of passed) {
    if (id === undefined) continue;
    moves.push(list.list.includes(id) ? rewrite(id) : { kind: 'retell', id });
  }
  return moves;
}

/**
 * Moves the products that two windows of a delta share, in turn, so that they keep their places, while what stands behind
 * them slips to where the delta was read.
 * @param start of the next window
 */
export function slipBehind(game: Game, told: readonly number[], start: number): Move[] {
  const { list, mayResize } = game;
  const isListed = (id: number): boolean => list.list.includes(id);
  const joint = told.slice(start, game.deltaEnd);
  const gone = told.slice(0, Math.min(start, Math.max(0, told.length - game.deltaEnd)));
  return [
    ...gone
      .filter((id) => mayResize || !isListed(id))
      .map((id): Move => (isListed(id) ? removed(game, id) : { kind: 'forget', id })),
    ...joint.map((id): Move => (isListed(id) ? rewrite(id) : { kind: 'retell', id })),
  ];
}

/** Swaps the hidden product with one whose place was read already. */
function swap(game: Game, order: readonly number[], from: number, to: number): Move[] {
  const { random } = game;
  const others = order.filter((id, at) => isFree(game, id) && (at < from || at >= to));
  const other = pickOf(random, others);
  return other === undefined ? [] : [{ kind: 'swap', id: game.hidden, with: other }];
}

function removeBefore(game: Game, order: readonly number[]): Move[] {
  const { random, seam, mayResize } = game;
  const before = order.slice(0, order.indexOf(game.hidden)).filter((id) => isFree(game, id));
  const count = mayResize ? Math.min(1 + wholeBelow(random, seam + 2), before.length, order.length - LEAST) : 0;
  return Array.from({ length: Math.max(0, count) }, () => before.splice(wholeBelow(random, before.length), 1)[0] ?? 0)
    .filter((id) => id > 0)
    .map((id) => removed(game, id));
}

export function anything(game: Game): Move[] {
  const { list, random, mayResize } = game;
  const order = list.list;
  const id = pickOf(
    random,
    order.filter((id) => isFree(game, id)),
  );
  if (id === undefined) return [];
  const kind = random();
  if (kind < 0.5 || !mayResize)
    return [
      edit(
        game,
        id,
        pickOf(
          random,
          order.filter((one) => one !== id),
        ) ?? null,
      ),
    ];
  if (kind < 0.7) return [{ kind: 'create', id: list.newId(), after: id }];
  if (kind < 0.8) return restored(game, id);
  return order.length > LEAST ? [removed(game, id)] : [];
}

function draw(game: Game, order: readonly number[], from: number): Move[] {
  const { random, perPage, place } = game;
  const to = from + perPage;
  const kind = random();
  if (place === 'ties') return kind < 0.8 ? swap(game, order, from, to) : anything(game);
  if (kind < 0.08) return flee(game, order, from);
  if (kind < 0.4) return slip(game, order, from);
  if (kind < 0.6) return slipInTurn(game, order, from);
  if (kind < 0.8) return slipBack(game, order, to);
  return kind < 0.9 ? removeBefore(game, order) : anything(game);
}

/** How well a list hides the product from a window, while it still seems to join what was read. */
function scoreOf(game: Game, order: readonly number[], from: number, moves: number): number {
  const { random, perPage } = game;
  const to = from + perPage;
  const at = order.indexOf(game.hidden);
  const isShown = at >= from && at < to;
  const isPassed = !isShown && game.reads.some((read) => at >= read.from && at < read.from + read.ids.length);
  const near = neighbour(game, from);
  const common = order.slice(from, to).filter((id) => near?.ids.includes(id) === true).length;
  const both = near === undefined || near.from > from ? [] : near.ids.slice(from - near.from);
  const isSame = both.length > 0 && both.every((id, index) => order[from + index] === id);
  const joint = near === undefined ? 0 : common === 0 ? -40 : 6 * Math.min(common, 5);
  return (
    (isShown ? -100 : 0) + (isPassed ? 80 : 0) + joint + (isSame ? game.intent.sameness : 0) - moves + 10 * random()
  );
}

/** Chooses the best of some plans. */
export function plan(game: Game, from: number): Move[] {
  const { list, place } = game;
  let best: Move[] = [];
  let most = scoreOf(game, list.list, from, 0);
  for (let n = 0; n < game.intent.tries; n++) {
    const budget = game.touches;
    const moves = draw(game, list.list, from);
    const order = [...list.list];
    for (const move of moves) rearrange(order, move, place);
    const score = scoreOf(game, order, from, moves.length);
    if (score > most) {
      best = moves;
      most = score;
    } else game.touches = budget;
  }
  return best;
}
