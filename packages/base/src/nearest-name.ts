/** Levenshtein distance. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of from.split('').entries()) {
    const next = [index + 1];
    for (let at = 1; at <= to.length; at++) {
      const replaced = (row[at - 1] ?? 0) + (letter === to[at - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[at] ?? 0) + 1, (next[at - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

/** Longer names are not compared, to limit the work. */
const MAX_NAME = 64;

/** The known name that was probably meant; undefined if none is similar. Ignores case, and `-` for `_`. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > MAX_NAME) return undefined;
  const folded = name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase();
  // Two swapped letters count as two steps.
  const allowed = folded.length < 4 ? 1 : Math.max(2, Math.floor(folded.length / 3));
  const [best] = known
    // The lengths already differ by more steps.
    .filter(({ length }) => Math.abs(length - folded.length) <= allowed)
    .map((candidate) => ({ candidate, steps: distance(folded, candidate) }))
    .filter(({ steps }) => steps <= allowed)
    .sort((a, b) => a.steps - b.steps);
  return best?.candidate;
}
