import { decoded } from '@catchword/base/percent-decode';
import type { Operation } from './operation.ts';

export type Route =
  | { readonly operation: Operation; readonly values: Readonly<Record<string, string>> }
  | { readonly status: 404 | 405 };

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replace(/:(\w+)/g, '(?<$1>[^/]*)')}$`);
}

/** Finds the first operation that matches. A slash at the end is ignored: `/v4/assets/` has no vbid. */
export function createRouter(operations: readonly Operation[]) {
  const entries = operations.map((operation) => ({ operation, pattern: patternOf(operation.path) }));
  return (method: string, path: string): Route => {
    const bare = path.replace(/\/$/, '');
    const matching = entries.filter(({ pattern }) => pattern.test(bare));
    const found = matching.find(({ operation }) => operation.method === method);
    if (found === undefined) return { status: matching.length === 0 ? 404 : 405 };
    const values = Object.entries(found.pattern.exec(bare)?.groups ?? {}).map(
      ([name, segment]) => [name, decoded(segment)] as const,
    );
    return { operation: found.operation, values: Object.fromEntries(values) };
  };
}
