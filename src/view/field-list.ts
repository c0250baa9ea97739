import { objectMembers, objectText } from '../catalog/json-text.ts';

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

/** Tells whether a product has the member at a path such as `metadata.description`. It reads each object once for all paths. */
export function pathsIn(body: string): (path: string) => boolean {
  const read = new Map<string, ReadonlyMap<string, string>>();
  function membersAt(place: string, json: string): ReadonlyMap<string, string> {
    const members = read.get(place) ?? objectMembers(json);
    read.set(place, members);
    return members;
  }
  return (path) => {
    let json: string | undefined = body;
    let place = '';
    for (const name of path.split('.')) {
      if (place !== '' && !json.startsWith('{')) return false;
      json = membersAt(place, json).get(name);
      if (json === undefined) return false;
      place += `.${name}`;
    }
    return true;
  };
}
