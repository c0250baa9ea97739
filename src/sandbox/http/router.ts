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

function valuesOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> | null {
  if (pattern.length !== segments.length) return null;
  const values: Record<string, string> = {};
  for (const [at, part] of pattern.entries()) {
    const segment = segments[at] ?? '';
    if (part.startsWith(':')) values[part.slice(1)] = decode(segment);
    else if (part !== segment) return null;
  }
  return values;
}

/** Finds the first operation that matches. A slash at the end is ignored: `/v4/assets/` has no vbid. */
export function createRouter(operations: readonly Operation[]): (method: string, path: string) => Route {
  const entries = operations.map((operation) => ({ operation, pattern: operation.path.split('/') }));
  return (method, path) => {
    const segments = path.replace(/\/$/, '').split('/');
    let status: 404 | 405 = 404;
    for (const { operation, pattern } of entries) {
      const values = valuesOf(pattern, segments);
      if (values === null) continue;
      if (operation.method === method) return { operation, values };
      status = 405;
    }
    return { status };
  };
}
