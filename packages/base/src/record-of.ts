/** An object that has the same value under each name: a row of a table of types. */
export function recordOf<const Value, Name extends string>(value: Value, ...names: readonly Name[]) {
  return Object.fromEntries(names.map((name) => [name, value])) as Record<Name, Value>;
}
