import type { Operation } from './operation.ts';

/** The operation that a request calls, or the status of the error. */
export type Route =
  | { readonly operation: Operation; readonly values: Readonly<Record<string, string>> }
  | { readonly status: 404 | 405 };

/** Returns a segment as it is if it is not encoded correctly. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replace(/:(\w+)/g, '(?<$1>[^/]*)')}$`);
}

/** Finds the first operation that matches. A slash at the end is ignored: `/v4/assets/` has no vbid. */
export function createRouter(operations: readonly Operation[]) {
  const entries = operations.map((operation) => ({ operation, pattern: patternOf(operation.path) }));
  return (method: string, path: string): Route => {
    const matching = entries.flatMap(({ operation, pattern }) => {
      const match = pattern.exec(path.replace(/\/$/, ''));
      return match === null ? [] : [{ operation, groups: match.groups ?? {} }];
    });
    const found = matching.find(({ operation }) => operation.method === method);
    if (found === undefined) return { status: matching.length === 0 ? 404 : 405 };
    const values = Object.entries(found.groups).map(([name, segment]) => [name, decode(segment)] as const);
    return { operation: found.operation, values: Object.fromEntries(values) };
  };
}
