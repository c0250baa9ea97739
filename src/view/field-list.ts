import { nearestName } from '../base/nearest-name.ts';
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
  const wanted = wantedOf([['vbid'], ...text.split(',').map((path) => path.trim().split('.'))]);
  return { keys: new Set(wanted.keys()), pick: (body: string) => pick(body, wanted) };
}

/** The members of a list that none of these products has, each with a similar name that some product has. */
export function absentMembers(text: string, bodies: readonly string[]): string[] {
  const names = [...new Set(bodies.flatMap((body) => [...objectMembers(body).keys()])), 'vbid'];
  const paths = text.split(',').map((path) => path.trim());
  return paths.flatMap((path) => {
    const wanted = wantedOf([path.split('.')]);
    if (path === 'vbid' || bodies.some((body) => pick(body, wanted).size > 0)) return [];
    const near = nearestName(path, names);
    return [`no product has ${path}${near === undefined ? '' : `: did you mean ${near}?`}`];
  });
}
