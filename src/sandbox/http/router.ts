import type { Operation } from './operation.ts';

/** Which operation a path asks for, with the values of its `:name` segments; or how nothing is asked for. */
export type Route =
  | { readonly operation: Operation; readonly values: Readonly<Record<string, string>> }
  | { readonly status: 404 | 405 };

/** Null where it is not encoded well. */
function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}

function valuesOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> | null {
  if (pattern.length !== segments.length) return null;
  const values: Record<string, string> = {};
  for (const [at, part] of pattern.entries()) {
    const segment = segments[at] ?? '';
    if (part.startsWith(':') && segment !== '') values[part.slice(1)] = decoded(segment) ?? segment;
    else if (part !== segment) return null;
  }
  return values;
}

/** The first operation that fits counts: fixed segments go before `:name` ones. */
export function createRouter(operations: readonly Operation[]): (method: string, path: string) => Route {
  const entries = operations.map((operation) => ({ operation, pattern: operation.path.split('/') }));
  // Of a PUT, a value that is empty is absent where the path without it is known: `/v4/assets/` is `/v4/assets`.
  const absent = new Set(
    operations.flatMap(({ method, path }) => {
      const without = /^(.*)\/:\w+$/.exec(path)?.[1];
      const known = method === 'PUT' && operations.some((other) => other.method === method && other.path === without);
      return known ? [`${method} ${without}/`] : [];
    }),
  );
  return (method, path) => {
    const segments = (absent.has(`${method} ${path}`) ? path.slice(0, -1) : path).split('/');
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
