import type { FetchTask } from '@catchword/catalog/page-types';
import type { Random } from '@catchword/sandbox/catalog/random';
import { startOf, windowsFrom } from '../../src/proof/plan.ts';
import {
  anything,
  edit,
  flee,
  type Game,
  type Intent,
  isFree,
  LEAST,
  make,
  pickOf,
  plan,
  restored,
  rewrite,
  type Scene,
  slipBehind,
  slipInDelta,
  wholeBelow,
} from './adversary-moves.ts';
import type { Move, MovingList } from './moving-list.ts';

/*
 * An adversary that moves a list between single requests, so that a product which nothing touches, the hidden one, is in
 * no window, while the windows still seem to join. It knows what was read and which window comes next, tries several
 * moves on a copy of the list, and makes the moves that hide the product best.
 */

export interface AdversaryOptions {
  readonly list: MovingList;
  readonly random: Random;
  readonly perPage: number;
  readonly seam: number;
  readonly isLate: boolean;
  /** The scene that it plays most often. */
  readonly favourite: Scene;
}

/** @param isLate whether deltas are late: then a delta that is asked too early tells of no touch */
function drawIntent(random: Random, isLate: boolean, favourite: Scene): Intent {
  const touch = random() < (isLate ? 0.6 : 0.45);
  const late = isLate && random() < 0.7 ? (['keep', 'erase'] as const) : (['keep', 'erase', 'spoil', 'spoil'] as const);
  const fates = touch ? late : (['keep', 'keep', 'erase', 'erase', 'erase', 'spoil'] as const);
  return {
    scene: random() < 0.7 ? favourite : 'any',
    touch,
    stock: random() < 0.4,
    fate: pickOf(random, fates) ?? 'keep',
    removal: random() < 0.7 ? 'erase' : 'withdraw',
    tries: 1 + wholeBelow(random, 10),
    sameness: random() < 0.5 ? 30 : 0,
    noise: random() < 0.6 ? 0 : 0.2 * random(),
    patience: 4 + wholeBelow(random, random() < 0.8 ? 25 : 100),
  };
}

/** Chooses a product that the next windows would show: often one that stands where the read part ends. */
function choose(game: Game): void {
  const { list, random, perPage, seam } = game;
  const unshown = list.list.filter((id) => !game.shown.has(id) && !game.touched.has(id) && !game.moved.has(id));
  const sequence = windowsFrom({ perPage, seam });
  const ends: number[] = [];
  for (let end = perPage; end < list.list.length; ) {
    const window = sequence.next().value;
    end = window.page * window.perPage;
    ends.push(end);
  }
  const nextEnd = game.reads.reduce((most, { from, ids }) => Math.max(most, from + ids.length), 0);
  const end = nextEnd > 0 && random() < 0.8 ? nextEnd : (pickOf(random, ends) ?? 0);
  const near = list.list[end + wholeBelow(random, 3)];
  game.hidden = (near !== undefined && unshown.includes(near) ? near : pickOf(random, unshown)) ?? 0;
}

/** Lets what it moved past the hidden product vanish: what it touched only after a delta has shown it (assumption 4). */
function cover(game: Game): void {
  const { list, mayResize } = game;
  const isUntold = (id: number): boolean => game.touched.has(id) && !game.told.has(id);
  for (const id of game.moved) {
    if (game.intent.fate === 'erase' && mayResize && !isUntold(id) && list.list.length > LEAST) {
      if (list.list.includes(id)) make(game, [{ kind: 'erase', id }]);
    }
  }
  game.moved = new Set([...game.moved].filter((id) => game.intent.fate === 'erase' && isUntold(id)));
}

function beforeWindow(game: Game, from: number): void {
  const { list, random } = game;
  if (game.intent.scene === 'late') {
    // Once, and nothing else moves: so the windows seem to stand still.
    if (game.fled > 0 || game.reads.length === 0 || random() < 0.5) return;
    const moves = flee(game, list.list, from);
    make(game, moves);
    game.fled = moves[0]?.id ?? 0;
    return;
  }
  if (game.hidden === 0 || game.shown.has(game.hidden) || !list.list.includes(game.hidden)) choose(game);
  if (game.hidden === 0) return;
  const isUsed = [...game.moved].some((id) => game.shown.has(id));
  if (isUsed && random() < 0.3) cover(game);
  const moves = plan(game, from);
  const before = list.list.indexOf(game.hidden);
  make(game, moves);
  for (const move of moves) {
    if (move.kind !== 'edit' || before < 0) continue;
    game.moved.add(move.id);
    if (game.intent.fate === 'spoil') make(game, [{ kind: 'spoil', id: move.id }]);
  }
}

/** Edits products before one that it moved, so that this slips out of the windows of a long delta. */
function beforeDelta(game: Game, { pass, window, from }: FetchTask): void {
  const { list, random } = game;
  if (pass !== game.deltaPass) {
    if (random() < 0.9) cover(game);
    game.deltaEnd = 0;
  }
  game.deltaPass = pass;
  if (game.intent.scene === 'gone') {
    if (window.page === 1 || game.hasSlipped || list.newestFirst) return;
    make(game, slipBehind(game, list.changedSince(from ?? 0), startOf(window)), true);
    game.hasSlipped = true;
    return;
  }
  if (window.page === 1 || from === null) return;
  // The product that moved before moves again, once, so that the windows of this delta seem to stand still, too.
  const isScene = game.fled > 0;
  if (isScene ? game.hasSlipped : random() < 0.3) return;
  if (isScene || random() < 0.6) {
    make(game, slipInDelta(game, list.changedSince(from), startOf(window)), isScene || random() < 0.5);
    game.hasSlipped ||= isScene;
    return;
  }
  const told = list.changedSince(from).filter((id) => isFree(game, id) && list.list.includes(id));
  const count = 1 + wholeBelow(random, 3);
  for (const id of told.slice(0, count)) make(game, [edit(game, id, null)]);
}

export type Adversary = ReturnType<typeof createAdversary>;

export function createAdversary({ list, random, perPage, seam, isLate, favourite }: AdversaryOptions) {
  const { place } = list;
  const size = list.list.length;
  const nothing = {
    hidden: 0,
    reads: [],
    shown: new Set<number>(),
    moved: new Set<number>(),
    touched: new Set<number>(),
    told: new Set<number>(),
  };
  const intent = drawIntent(random, isLate, favourite);
  const none = {
    touches: 0,
    fled: 0,
    hasSlipped: false,
    deltaPass: -1,
    deltaEnd: 0,
    asked: 0,
    mayResize: place !== 'ties',
  };
  const game: Game = { list, place, random, perPage, seam, intent, ...nothing, ...none };
  return {
    /** Begins a run. Before it, some products vanish, or are withdrawn so late that the run's deltas tell. */
    begin: (): void => {
      game.intent = drawIntent(random, isLate, favourite);
      [game.hidden, game.touches, game.fled, game.deltaPass, game.asked] = [0, 0, 0, -1, 0];
      game.hasSlipped = false;
      [game.reads, game.shown, game.moved] = [[], new Set(), new Set()];
      [game.touched, game.told] = [new Set(), new Set()];
      choose(game);
      const count = random() < 0.4 ? 1 + wholeBelow(random, 3) : 0;
      for (let n = 0; n < count && list.list.length > LEAST; n++) {
        const id = pickOf(
          random,
          list.list.filter((one) => isFree(game, one)),
        );
        if (id !== undefined) make(game, [{ kind: random() < 0.7 ? 'withdraw' : 'erase', id }]);
      }
    },
    /** Fills the list up again, between two runs. */
    refill: (): void => {
      while (list.list.length < size)
        make(game, [{ kind: 'create', id: list.newId(), after: pickOf(random, list.list) ?? null }]);
    },
    /** Called before the source answers. */
    before: (task: FetchTask): void => {
      if (game.asked++ > game.intent.patience) return;
      if (random() < game.intent.noise) make(game, anything(game));
      if (task.from === null) beforeWindow(game, startOf(task.window));
      else beforeDelta(game, task);
    },
    /** Called with what the source answered, unless the answer is lost. */
    answered: ({ from, pass, window }: FetchTask, ids: readonly number[]): void => {
      for (const id of ids) game.shown.add(id);
      if (from === null) game.reads.push({ pass, from: startOf(window), ids });
      else {
        game.deltaEnd = Math.max(game.deltaEnd, startOf(window) + ids.length);
        for (const id of ids) if (game.touched.has(id)) game.told.add(id);
      }
    },
    /** Whether the run has read past a product that lives, and that no answer has shown. */
    isHiding: (): boolean => !game.shown.has(game.hidden) && list.list.includes(game.hidden),
    /** Called while time passes. */
    idle: (): void => {
      const isLate = game.intent.scene === 'late';
      if (!isLate && random() < 0.3) cover(game);
      for (let n = wholeBelow(random, 3); n > 0; n--) if (!isLate && random() < 0.3) make(game, anything(game));
      // What no window shows, because it was erased, may be back.
      if (!isLate && random() < 0.2) make(game, restored(game, pickOf(random, list.list) ?? 0));
      // So many products change that the next delta is longer than a page.
      if (random() < (isLate ? 0.1 : 0.75)) return;
      const shown = list.list.filter((id) => game.shown.has(id) && isFree(game, id) && id !== game.fled);
      for (const id of shown.slice(0, perPage + seam + 1)) make(game, [rewrite(id)]);
    },
    /** Lets some products change before a delta run, and some that were withdrawn. */
    stir: (): void => {
      const gone = [...list.lives.keys()].filter((id) => !list.list.includes(id) && list.stateOf(id) !== undefined);
      if (game.intent.scene === 'gone') {
        // First many are withdrawn, undisturbed; then these are a page of a delta, with a change or two behind them.
        game.hasSlipped = gone.length < perPage;
        const [kind, ids] = game.hasSlipped
          ? (['withdraw', list.list.slice(LEAST)] as const)
          : (['retell', gone] as const);
        const told = ids.slice(-perPage).map((id): Move => ({ kind, id }));
        const behind = list.list.slice(0, 1 + wholeBelow(random, 2)).map((id) => rewrite(id));
        make(game, [...told, ...behind]);
        return;
      }
      for (const id of gone) if (random() < 0.7) make(game, [{ kind: 'retell', id }]);
      for (const id of list.list) if (random() < 0.5) make(game, [rewrite(id)]);
    },
  };
}
