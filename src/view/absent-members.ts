import { nearestName } from '@catchword/base/nearest-name';
import { ROWS } from '@catchword/catalog/fields';
import { membersIn, splitPath } from './field-list.ts';

/** For safety: names of members that are kept, to find a similar one. */
const MOST_NAMES = 1_000;

/** Every product has its key, and an answer to whether it is withdrawn: without the member, it is not. */
const ALWAYS = ['vbid', ...ROWS.filter(({ form }) => form === 'sellable').map(({ path }) => path)];

/** A member that a view names, and that no product has. */
export interface Absent {
  readonly path: string;
  /** A similar name that some product has. */
  readonly near: string | undefined;
  /** Whether the service describes the member, so that it may just be rare. */
  readonly isKnown: boolean;
}

export type Absence = ReturnType<typeof createAbsence>;

/** Finds the members, of those that a view names, which no product has. It costs little once each was seen. */
export function createAbsence(paths: Iterable<string>) {
  const missing = new Set(paths);
  for (const path of ALWAYS) missing.delete(path);
  /** By the place of an object. */
  const names = new Map<string, Set<string>>();
  let products = 0;

  function noteNames(place: string, members: ReadonlyMap<string, string>): void {
    const some = names.get(place) ?? new Set();
    names.set(place, some);
    if (some.size < MOST_NAMES) for (const name of members.keys()) some.add(name);
  }

  function nearOf(path: string): string | undefined {
    const near = (place: string, name: string) => nearestName(name, [...(names.get(place) ?? [])]);
    const [place, name] = splitPath(path);
    const found = near(place, name);
    if (place === '') return found;
    // Nothing is inside of a list, such as that of variants.
    return found === undefined ? near('', path) : `${place}.${found}`;
  }

  return {
    /** Looks at a product. */
    see: (body: string): void => {
      products++;
      if (missing.size === 0) return;
      const membersAt = membersIn(body);
      for (const path of missing) {
        const [place, name] = splitPath(path);
        const members = membersAt(place);
        if (members.has(name)) missing.delete(path);
        else noteNames(place, members);
      }
      noteNames('', membersAt(''));
    },
    /** How many products it looked at. */
    seen: (): number => products,
    /** The paths that none of the products had so far; nothing if there was no product. */
    paths: (): string[] => (products === 0 ? [] : [...missing]),
    /** The same, each with a similar name, which takes milliseconds to find. */
    found: (): Absent[] => {
      if (products === 0) return [];
      return [...missing].map((path) => ({
        path,
        near: nearOf(path),
        isKnown: ROWS.some((row) => row.path === path),
      }));
    },
  };
}

/** @param products how many the filter was tried with */
export function noneText(products: number): string {
  return `the filter matches none of ${products.toLocaleString('en')} products: compare its values with those that the source writes, such as ePub`;
}

export function absentText({ path, near }: Absent): string {
  return `no product has ${path}${near === undefined ? '' : `: did you mean ${near}?`}`;
}
