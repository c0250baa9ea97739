/** When a product is distributed: from `from` on, before `until`; milliseconds since 1970, or infinite. */
export interface OnSale {
  readonly from: number;
  readonly until: number;
}

/** A moment at which a product enters or leaves distribution. */
export interface Turn {
  readonly at: number;
  readonly index: number;
}

/** The turns to come, in order of time. They are taken when somebody looks, so that no timer is needed. */
export interface Turns {
  /** Replaces what was planned for the product. */
  plan(index: number, window: OnSale, now: number): void;
  /** Takes the earliest turn that is due; null where none is. */
  due(now: number): Turn | null;
}

export function isOnSale(window: OnSale, now: number): boolean {
  return window.from <= now && now < window.until;
}

export function createTurns(): Turns {
  let turns: Turn[] = [];
  const planned = new Set<number>();

  function insert(turn: Turn): void {
    let low = 0;
    let high = turns.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((turns[middle]?.at ?? 0) <= turn.at) low = middle + 1;
      else high = middle;
    }
    turns.splice(low, 0, turn);
  }

  return {
    plan: (index, { from, until }, now) => {
      if (planned.delete(index)) turns = turns.filter((turn) => turn.index !== index);
      for (const at of [from, until]) {
        if (at <= now || at === Number.POSITIVE_INFINITY) continue;
        planned.add(index);
        insert({ at, index });
      }
    },
    due: (now) => {
      const [first] = turns;
      if (first === undefined || first.at > now) return null;
      turns.shift();
      return first;
    },
  };
}
