import type { FetchTask, Window } from '@catchword/catalog/page-types';
import { startOf } from '../../src/proof/plan.ts';

/*
 * A small source whose list an adversary moves by hand, between any two requests. It keeps what docs/page-drift.md
 * assumes: products that were not modified keep their order, and deltas are late by less than the overlap.
 */

/**
 * Where a modified product goes: to the end, to the head, nowhere, or anywhere. With `ties` two products may change
 * places although nothing touched them: then only the source's total tells that one was not read.
 */
export const PLACES = ['updated-asc', 'updated-desc', 'id', 'free', 'ties'] as const;
export type Place = (typeof PLACES)[number];

export type Move =
  /**
   * `touch`: only the time of change is new. `stock`: only a field, which settings may ignore, is. `after`: where `free`
   * puts the product; null: at the end.
   */
  | {
      readonly kind: 'edit';
      readonly id: number;
      readonly after: number | null;
      readonly touch: boolean;
      readonly stock?: boolean;
    }
  | { readonly kind: 'create'; readonly id: number; readonly after: number | null }
  /** Lists a product again that was erased or withdrawn, with a new time of change. */
  | { readonly kind: 'restore'; readonly id: number; readonly after: number | null }
  /** No longer listed, and no delta tells. */
  | { readonly kind: 'erase'; readonly id: number }
  /** No longer listed, and deltas tell. */
  | { readonly kind: 'withdraw'; readonly id: number }
  /** A product that was withdrawn gets another content, as deltas tell. */
  | { readonly kind: 'retell'; readonly id: number }
  /** A product that was withdrawn is erased, so deltas do not tell of it any more. */
  | { readonly kind: 'forget'; readonly id: number }
  | { readonly kind: 'swap'; readonly id: number; readonly with: number }
  /** From now on, deltas show the product with a byte that is not UTF-8. */
  | { readonly kind: 'spoil'; readonly id: number };

interface State {
  /** Counts changes: deltas tell changes of the same time in this order. */
  readonly change: number;
  readonly version: number;
  readonly stock: number;
  /** The source's time of change. */
  readonly stamp: number;
  readonly withdrawn: boolean;
  readonly spoilt: boolean;
}

/** Since when a product has been listed without interruption; null: it is not listed. By the world's clock. */
export interface Life {
  livingSince: number | null;
}

export interface Answer {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly ids: readonly number[];
}

function insert(list: number[], id: number, place: Place, after: number | null): void {
  if (place === 'updated-desc') list.unshift(id);
  else list.splice(after === null || place !== 'free' ? list.length : list.indexOf(after) + 1, 0, id);
}

/** Moves the products of a list as the source would. */
export function rearrange(list: number[], move: Move, place: Place): void {
  const at = list.indexOf(move.id);
  if (move.kind === 'create' || move.kind === 'restore') insert(list, move.id, place, move.after);
  else if (at < 0) return;
  else if (move.kind === 'swap') {
    const other = list.indexOf(move.with);
    [list[at], list[other]] = [move.with, move.id];
  } else if (move.kind === 'erase' || move.kind === 'withdraw') list.splice(at, 1);
  else if (move.kind === 'edit' && place !== 'id' && place !== 'ties') {
    list.splice(at, 1);
    insert(list, move.id, place, move.after);
  }
}

export interface MovingListOptions {
  readonly size: number;
  readonly place: Place;
  /** How much later a delta shows a change than the list, if the change is late. */
  readonly lagMs: number;
  /** How much earlier than the change its noted time is. */
  readonly notedEarlierMs: number;
  readonly inclusiveFrom: boolean;
  /** Whether deltas list the newest change first. */
  readonly newestFirst: boolean;
  readonly now: () => number;
  readonly sourceNow: () => number;
}

function textOf(id: number, { version, stock, withdrawn, spoilt }: State, isDelta: boolean): string {
  // Written as Latin-1, so that the letter is not UTF-8.
  const title = isDelta && spoilt ? '\u00e9' : 'Book';
  const sold = withdrawn ? ',"distributable":false' : '';
  return `{"vbid":"P${id}","version":${version},"stock":${stock},"title":"${title}"${sold}}`;
}

export type MovingList = ReturnType<typeof createMovingList>;

export function createMovingList(options: MovingListOptions) {
  const { size, place, lagMs, notedEarlierMs, inclusiveFrom, newestFirst, now, sourceNow } = options;
  const list = Array.from({ length: size }, (_, at) => at + 1);
  let changes = 0;
  const old = { change: 0, version: 1, stock: 0, stamp: sourceNow() - 86_400_000, withdrawn: false, spoilt: false };
  const states = new Map<number, State>(list.map((id) => [id, old]));
  const lives = new Map<number, Life>(list.map((id) => [id, { livingSince: now() }]));
  const erased = new Map<number, State>();
  /** What deltas show, and what they will show later; null: nothing. */
  const told = new Map<number, State>();
  let later: { readonly at: number; readonly id: number; readonly state: State | null }[] = [];
  let lastId = size;

  function note(id: number, state: State | null, isPrompt: boolean): void {
    if (state === null) states.delete(id);
    else states.set(id, state);
    // A change that deltas tell at once replaces those that they would tell later.
    if (isPrompt) later = later.filter((one) => one.id !== id);
    later.push({ at: isPrompt ? Number.NEGATIVE_INFINITY : now(), id, state });
  }

  /** Moves of products that are not listed do nothing. @param isPrompt whether deltas show it at once */
  function happen(move: Move, isPrompt = false): void {
    const { id, kind } = move;
    const withdrawn = states.get(id);
    const isGone = withdrawn?.withdrawn === true && !list.includes(id);
    if (kind === 'retell' && isGone) {
      const stamp = sourceNow();
      note(id, { ...withdrawn, change: ++changes, version: withdrawn.version + 1, stamp }, isPrompt);
    }
    if (kind === 'forget' && isGone) {
      erased.set(id, withdrawn);
      note(id, null, isPrompt);
    }
    const isNew = kind === 'create' || kind === 'restore';
    if (isNew === list.includes(id)) return;
    rearrange(list, move, place);
    if (kind === 'swap') return;
    const state = states.get(id) ?? erased.get(id) ?? { ...old, version: 0 };
    const life = lives.get(id) ?? { livingSince: now() };
    lives.set(id, life);
    const stamp = sourceNow() - notedEarlierMs;
    if (kind === 'spoil') {
      note(id, { ...state, spoilt: true }, isPrompt);
      return;
    }
    if (isNew) life.livingSince = now();
    if (kind === 'erase' || kind === 'withdraw') life.livingSince = null;
    if (kind === 'erase') {
      erased.set(id, state);
      note(id, null, isPrompt);
    } else {
      const isStock = kind === 'edit' && !move.touch && move.stock === true;
      const isSame = isStock || (kind === 'edit' && move.touch) || (kind === 'restore' && !state.withdrawn);
      const version = isSame ? state.version : state.version + 1;
      const stock = isStock ? state.stock + 1 : state.stock;
      note(id, { change: ++changes, version, stock, stamp, withdrawn: kind === 'withdraw', spoilt: false }, isPrompt);
    }
  }

  function changedSince(from: number): number[] {
    const upTo = now() - lagMs;
    for (const { at, id, state } of later) {
      if (at > upTo) continue;
      if (state === null) told.delete(id);
      else told.set(id, state);
    }
    if (later.length > 0) later = later.filter(({ at }) => at > upTo);
    const shown = [...told].filter(([, { stamp }]) => (inclusiveFrom ? stamp >= from : stamp > from));
    const sorted = shown.sort(([, a], [, b]) => a.stamp - b.stamp || a.change - b.change).map(([id]) => id);
    return newestFirst ? sorted.reverse() : sorted;
  }

  function pageOf(all: readonly number[], window: Window, textAt: (id: number) => string): Answer {
    const { page, perPage } = window;
    const ids = all.slice(startOf(window), startOf(window) + perPage);
    const totals = `"num_items":${all.length},"page":${page},"per_page":${perPage}`;
    const pages = `"total_pages":${Math.ceil(all.length / perPage)}`;
    const text = `{${totals},${pages},"items":[${ids.map(textAt).join(',')}]}`;
    return { ids, body: new Uint8Array(Buffer.from(text, 'latin1')) };
  }

  return {
    place,
    /** The ids of its products, in its order. */
    list: list as readonly number[],
    lives: lives as ReadonlyMap<number, Life>,
    newestFirst,
    /** The version of a product that the source has now, and its time of change; undefined if it was erased. */
    stateOf: (id: number): Pick<State, 'version' | 'stamp' | 'spoilt'> | undefined => states.get(id),
    happen,
    newId: (): number => ++lastId,
    /** What the source answers now. @param isBlank whether it answers as if it had nothing */
    answer: ({ window, from }: Pick<FetchTask, 'window' | 'from'>, isBlank = false): Answer => {
      if (isBlank) return pageOf([], window, String);
      if (from === null) return pageOf(list, window, (id) => textOf(id, states.get(id) ?? old, false));
      return pageOf(changedSince(from), window, (id) => textOf(id, told.get(id) ?? old, true));
    },
    /** The ids of the products that a delta lists now. */
    changedSince,
  };
}
