import type { FastifyRequest } from 'fastify';

/** The path under which a proxy serves catchword, as `X-Forwarded-Prefix` says; empty without one. */
export function prefixOf({ headers }: FastifyRequest): string {
  const given = String(headers['x-forwarded-prefix'] ?? '').replace(/\/$/, '');
  // An address such as //other.example would lead to another server.
  return /^(\/[\w~-][\w.~-]*)+$/.test(given) ? given : '';
}

/** Puts the prefix before the local addresses in markup. preact escapes quotes, so that text never looks like one. */
export function underPrefix(request: FastifyRequest, html: string): string {
  const prefix = prefixOf(request);
  return prefix === '' ? html : html.replace(/ (href|src|action|data-live)="(?=\/)/g, ` $1="${prefix}`);
}
