import { objectMembers, objectText } from '@catchword/catalog/json-text';

/** A list of members of a product: the names that paths begin with, each with the rest of the paths; null: the whole member. */
type Wanted = ReadonlyMap<string, Wanted | null>;

/** A path has at most 32 names. For safety: reading it calls itself for each. */
const LIST = /^\s*[A-Za-z_][\w-]*(\.[\w-]+){0,31}(\s*,\s*[A-Za-z_][\w-]*(\.[\w-]+){0,31})*\s*$/;

/** Whether a choice of fields is a list such as `title, metadata.description`; else it is an expression. */
export function isFieldList(text: string): boolean {
  return LIST.test(text);
}

function wantedOf(paths: readonly (readonly string[])[]): Wanted {
  const rests = new Map<string, string[][]>();
  for (const [key = '', ...rest] of paths) {
    const others = rests.get(key);
    if (others === undefined) rests.set(key, [rest]);
    else others.push(rest);
  }
  return new Map([...rests].map(([key, all]) => [key, all.some(({ length }) => length === 0) ? null : wantedOf(all)]));
}

/** The wanted members of the text of an object, in its order, each with its own bytes. */
function pick(json: string, wanted: Wanted): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, value] of objectMembers(json)) {
    const inner = wanted.get(key);
    if (inner === null) found.set(key, value);
    else if (inner !== undefined && value.startsWith('{')) {
      const members = pick(value, inner);
      if (members.size > 0) found.set(key, objectText(members));
    }
  }
  return found;
}

/** Reads a list. @returns the members that it reads, and what selects them, which keeps the product's order and bytes */
export function fieldList(text: string) {
  const paths = text.split(',').map((path) => path.trim());
  const wanted = wantedOf([['vbid'], ...paths.map((path) => path.split('.'))]);
  return { paths, keys: new Set(wanted.keys()), pick: (body: string) => pick(body, wanted) };
}

/** The place of the object that a path such as `metadata.description` leads into, and the name there. */
export function splitPath(path: string): readonly [place: string, name: string] {
  const dot = path.lastIndexOf('.');
  return [path.slice(0, Math.max(0, dot)), path.slice(dot + 1)];
}

/** Tells the members of the object at a place of a product; none if no object is there. It reads each object once. */
export function membersIn(body: string): (place: string) => ReadonlyMap<string, string> {
  const read = new Map([['', objectMembers(body)]]);
  return function membersAt(place: string): ReadonlyMap<string, string> {
    const known = read.get(place);
    if (known !== undefined) return known;
    const [outer, name] = splitPath(place);
    const json = membersAt(outer).get(name);
    const members = json?.startsWith('{') ? objectMembers(json) : new Map<string, string>();
    read.set(place, members);
    return members;
  };
}
