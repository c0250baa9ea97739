import type { FetchTask } from '../../src/catalog/page.ts';
import { startOf, windowsFrom } from '../../src/catalog/plan.ts';
import type { Random } from '../../src/sandbox/catalog/random.ts';
import { type Move, type MovingList, rearrange } from './moving-list.ts';

/*
 * An adversary that moves a list between single requests, so that a product which nothing touches, the hidden one, is in
 * no window, while the windows still seem to join. It knows what was read and which window comes next, tries several
 * moves on a copy of the list, and makes those that hide the product best.
 */

/** What a window of the run's list held when the source answered. */
interface Read {
  readonly pass: number;
  readonly from: number;
  readonly ids: readonly number[];
}

/** What it does in one run. */
interface Intent {
  /** Edits change only the time of change. */
  readonly touch: boolean;
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

export interface AdversaryOptions {
  readonly list: MovingList;
  readonly random: Random;
  readonly perPage: number;
  readonly seam: number;
  readonly isLate: boolean;
}

/** More products that are touched, but not changed, at once would break assumption 5 of docs/page-drift.md. */
const TOUCHES = 4;
/** Products that it moves past the hidden one at most. */
const JOINTS = 6;
/** The number of products below which it erases none. */
const LEAST = 8;

function whole(random: Random, below: number): number {
  return Math.floor(random() * below);
}

/** @returns one of the values; undefined if it gets none */
export function pickOf<T>(random: Random, values: readonly T[]): T | undefined {
  return values[whole(random, values.length)];
}

/** @param isLate whether deltas are late: then those that are asked too early tell of no touch */
function drawIntent(random: Random, isLate: boolean): Intent {
  const touch = random() < (isLate ? 0.6 : 0.45);
  const late = isLate && random() < 0.7 ? (['keep'] as const) : (['keep', 'spoil', 'spoil'] as const);
  const fates = touch ? late : (['keep', 'keep', 'erase', 'erase', 'erase', 'spoil'] as const);
  return {
    touch,
    fate: pickOf(random, fates) ?? 'keep',
    removal: random() < 0.7 ? 'erase' : 'withdraw',
    tries: 1 + whole(random, 10),
    sameness: random() < 0.5 ? 30 : 0,
    noise: random() < 0.6 ? 0 : 0.2 * random(),
    patience: 4 + whole(random, random() < 0.8 ? 25 : 100),
  };
}

export type Adversary = ReturnType<typeof createAdversary>;

export function createAdversary({ list, random, perPage, seam, isLate }: AdversaryOptions) {
  const { place } = list;
  const size = list.list.length;
  let intent = drawIntent(random, isLate);
  let hidden = 0;
  let reads: Read[] = [];
  /** Products that an answer of the run has shown. */
  let shown = new Set<number>();
  /** Products that it moved past the hidden one. */
  let moved = new Set<number>();
  let touched = new Set<number>();
  let touches = 0;
  let deltaPass = -1;
  let asked = 0;

  /** In a tie only the total tells that a product was not read, so it must not change meanwhile: see the document. */
  const mayResize = place !== 'ties';

  function make(moves: readonly Move[]): void {
    for (const move of moves) {
      if (move.kind === 'edit' && move.touch) touched.add(move.id);
      list.happen(move);
    }
  }

  /** An edit with the content of the intent, as far as it is allowed. */
  function edit(id: number, after: number | null): Move {
    const touch = intent.touch && touches < TOUCHES && touches++ >= 0;
    return { kind: 'edit', id, after, touch };
  }

  function removed(id: number): Move {
    return { kind: touched.has(id) ? 'withdraw' : intent.removal, id };
  }

  /** Lists a product again behind this one, as one that is touched. */
  function restored(after: number): Move[] {
    const gone = [...list.lives].flatMap(([id, { livingSince }]) => (livingSince === null ? [id] : []));
    const id = pickOf(random, gone.slice(-5));
    if (id === undefined) return [];
    touches++;
    touched.add(id);
    return [{ kind: 'restore', id, after }];
  }

  function isFree(id: number): boolean {
    return id !== hidden;
  }

  /** Chooses a product that the next windows would show: often one that stands where the read part ends. */
  function choose(): void {
    const unshown = list.list.filter((id) => !shown.has(id) && !touched.has(id) && !moved.has(id));
    const sequence = windowsFrom({ perPage, seam });
    const ends: number[] = [];
    for (let end = perPage; end < list.list.length; ) {
      const window = sequence.next().value;
      end = window.page * window.perPage;
      ends.push(end);
    }
    const nextEnd = reads.reduce((most, { from, ids }) => Math.max(most, from + ids.length), 0);
    const end = nextEnd > 0 && random() < 0.8 ? nextEnd : (pickOf(random, ends) ?? 0);
    const near = list.list[end + whole(random, 3)];
    hidden = (near !== undefined && unshown.includes(near) ? near : pickOf(random, unshown)) ?? 0;
  }

  /** The window that was read last next to this offset. */
  function neighbour(from: number): Read | undefined {
    return reads
      .filter(({ ids }) => ids.length > 0)
      .sort((a, b) => Math.abs(a.from - from) - Math.abs(b.from - from) || b.pass - a.pass)[0];
  }

  /** Moves products from before the hidden one past it, so that it slips out of the window at its start. */
  function slip(order: readonly number[], from: number): Move[] {
    const at = order.indexOf(hidden);
    const before = order.slice(0, at);
    const known = new Set(neighbour(from)?.ids ?? []);
    const need = Math.max(1, at - from + 1);
    const joints = before.filter((id) => known.has(id) && isFree(id)).slice(-(1 + whole(random, JOINTS)));
    const moves: Move[] = [];
    let last = hidden;
    for (const id of joints) {
      moves.push(edit(id, last));
      last = id;
    }
    const others = before.filter((id) => !joints.includes(id) && isFree(id));
    const gone = mayResize ? Math.max(random() < 0.7 ? 1 : 0, need - joints.length) : 0;
    for (let n = 0; n < gone && others.length > 0 && order.length - n > LEAST; n++) {
      const [id = 0] = others.splice(whole(random, others.length), 1);
      moves.push(random() < 0.8 ? removed(id) : edit(id, null));
    }
    return moves;
  }

  /** Edits in turn everything that two windows share, and what follows, so that it keeps its places. */
  function slipInTurn(order: readonly number[], from: number): Move[] {
    const at = order.indexOf(hidden);
    const tail = order.slice(from).filter(isFree);
    const passed = place === 'free' ? tail.filter((id) => order.indexOf(id) < at + 1 + whole(random, 3)) : tail;
    const gone = mayResize ? order.slice(0, from).filter(isFree) : [];
    const first = pickOf(random, gone);
    const moves: Move[] = first === undefined ? [] : [removed(first)];
    let last = hidden;
    for (const id of passed) {
      moves.push({ kind: 'edit', id, after: last, touch: false });
      last = id;
    }
    return moves;
  }

  /** Moves products, or new ones, before the hidden one, so that it slips out of the window at its end. */
  function slipBack(order: readonly number[], to: number): Move[] {
    const at = order.indexOf(hidden);
    const previous = order[at - 1] ?? null;
    const behind = order.slice(at + 1).filter(isFree);
    const moves: Move[] = [];
    for (let n = Math.max(1, to - at) + whole(random, 2); n > 0; n--) {
      const id = behind.shift();
      if (id !== undefined && random() < 0.8) moves.push(edit(id, previous));
      else if (mayResize) moves.push({ kind: 'create', id: list.newId(), after: previous });
    }
    return moves;
  }

  /** Swaps the hidden product with one whose place was read already. */
  function swap(order: readonly number[], from: number, to: number): Move[] {
    const others = order.filter((id, at) => isFree(id) && (at < from || at >= to));
    const other = pickOf(random, others);
    return other === undefined ? [] : [{ kind: 'swap', id: hidden, with: other }];
  }

  function removeBefore(order: readonly number[]): Move[] {
    const before = order.slice(0, order.indexOf(hidden)).filter(isFree);
    const count = mayResize ? Math.min(1 + whole(random, seam + 2), before.length, order.length - LEAST) : 0;
    return Array.from({ length: Math.max(0, count) }, () => before.splice(whole(random, before.length), 1)[0] ?? 0)
      .filter((id) => id > 0)
      .map(removed);
  }

  function anything(): Move[] {
    const order = list.list;
    const id = pickOf(random, order.filter(isFree));
    if (id === undefined) return [];
    const kind = random();
    if (kind < 0.5 || !mayResize)
      return [
        edit(
          id,
          pickOf(
            random,
            order.filter((one) => one !== id),
          ) ?? null,
        ),
      ];
    if (kind < 0.7) return [{ kind: 'create', id: list.newId(), after: id }];
    if (kind < 0.8 && touches < TOUCHES) return restored(id);
    return order.length > LEAST ? [removed(id)] : [];
  }

  function draw(order: readonly number[], from: number): Move[] {
    const to = from + perPage;
    const kind = random();
    if (place === 'ties') return kind < 0.8 ? swap(order, from, to) : anything();
    if (kind < 0.4) return slip(order, from);
    if (kind < 0.6) return slipInTurn(order, from);
    if (kind < 0.8) return slipBack(order, to);
    return kind < 0.9 ? removeBefore(order) : anything();
  }

  /** How well a list hides the product from a window, while it still seems to join what was read. */
  function scoreOf(order: readonly number[], from: number, moves: number): number {
    const to = from + perPage;
    const at = order.indexOf(hidden);
    const isShown = at >= from && at < to;
    const isPassed = !isShown && reads.some((read) => at >= read.from && at < read.from + read.ids.length);
    const near = neighbour(from);
    const common = order.slice(from, to).filter((id) => near?.ids.includes(id) === true).length;
    const both = near === undefined || near.from > from ? [] : near.ids.slice(from - near.from);
    const isSame = both.length > 0 && both.every((id, index) => order[from + index] === id);
    const joint = near === undefined ? 0 : common === 0 ? -40 : 6 * Math.min(common, 5);
    return (isShown ? -100 : 0) + (isPassed ? 80 : 0) + joint + (isSame ? intent.sameness : 0) - moves + 10 * random();
  }

  /** Chooses the best of some plans. */
  function plan(from: number): Move[] {
    let best: Move[] = [];
    let most = scoreOf(list.list, from, 0);
    for (let n = 0; n < intent.tries; n++) {
      const budget = touches;
      const moves = draw(list.list, from);
      const order = [...list.list];
      for (const move of moves) rearrange(order, move, place);
      const score = scoreOf(order, from, moves.length);
      if (score > most) {
        best = moves;
        most = score;
      } else touches = budget;
    }
    return best;
  }

  /** Lets what it moved past the hidden product vanish, or spoils it. */
  function cover(): void {
    for (const id of moved) {
      if (intent.fate === 'erase' && mayResize && !touched.has(id) && list.list.length > LEAST) {
        if (list.list.includes(id)) make([{ kind: 'erase', id }]);
      }
    }
    moved = new Set();
  }

  function beforeWindow(from: number): void {
    if (hidden === 0 || shown.has(hidden) || !list.list.includes(hidden)) choose();
    if (hidden === 0) return;
    const isUsed = [...moved].some((id) => shown.has(id));
    if (isUsed && random() < 0.3) cover();
    const moves = plan(from);
    const before = list.list.indexOf(hidden);
    make(moves);
    for (const move of moves) {
      if (move.kind !== 'edit' || before < 0) continue;
      moved.add(move.id);
      if (intent.fate === 'spoil') make([{ kind: 'spoil', id: move.id }]);
    }
  }

  /** Edits products before one that it moved, so that this slips out of the windows of a long delta. */
  function beforeDelta({ pass, window, from }: FetchTask): void {
    if (pass !== deltaPass && random() < 0.9) cover();
    deltaPass = pass;
    if (window.page === 1 || from === null || random() < 0.5) return;
    const told = list.changedSince(from).filter((id) => isFree(id) && list.list.includes(id));
    const count = 1 + whole(random, 3);
    for (const id of told.slice(0, count)) make([edit(id, null)]);
  }

  return {
    /** Begins a run. Before it, some products vanish, or are withdrawn so late that the run's deltas tell. */
    begin: (): void => {
      intent = drawIntent(random, isLate);
      [hidden, touches, deltaPass, asked] = [0, 0, -1, 0];
      [reads, shown, moved, touched] = [[], new Set(), new Set(), new Set()];
      choose();
      const count = random() < 0.4 ? 1 + whole(random, 3) : 0;
      for (let n = 0; n < count && list.list.length > LEAST; n++) {
        const id = pickOf(random, list.list.filter(isFree));
        if (id !== undefined) make([{ kind: random() < 0.7 ? 'withdraw' : 'erase', id }]);
      }
    },
    /** Fills the list up again, between two runs. */
    refill: (): void => {
      while (list.list.length < size)
        make([{ kind: 'create', id: list.newId(), after: pickOf(random, list.list) ?? null }]);
    },
    /** Called before the source answers. */
    before: (task: FetchTask): void => {
      if (asked++ > intent.patience) return;
      if (random() < intent.noise) make(anything());
      if (task.from === null) beforeWindow(startOf(task.window));
      else beforeDelta(task);
    },
    /** Called with what the source answered, unless the answer is lost. */
    answered: ({ from, pass, window }: FetchTask, ids: readonly number[]): void => {
      for (const id of ids) shown.add(id);
      if (from === null) reads.push({ pass, from: startOf(window), ids });
    },
    /** Whether the run has read past a product that lives, and that no answer has shown. */
    isHiding: (): boolean => !shown.has(hidden) && list.list.includes(hidden),
    /** Called while time passes. */
    idle: (): void => {
      if (random() < 0.3) cover();
      for (let n = whole(random, 3); n > 0; n--) if (random() < 0.3) make(anything());
    },
  };
}
