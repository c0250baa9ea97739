import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { STREAM_PATH } from './sse/open-streams.ts';

/** The site that sent a request, as the browser states it. Only browsers send these headers, and pages cannot set them. */
const of = (headers: IncomingHttpHeaders, name: 'site' | 'mode' | 'dest') => headers[`sec-fetch-${name}`];

/** Whether `Origin` names the host and port that the browser asked; behind a proxy that adds TLS the scheme differs. */
function isOwnOrigin(origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const { protocol, host: from } = new URL(origin);
  const own = `${protocol}//${host}`;
  // The default port of a scheme may be written or not.
  return from !== '' && URL.canParse(own) && new URL(own).host === from;
}

/**
 * Whether a request that changes something may come from a page of another site (CSRF).
 * @param isBearer whether it holds the token itself, which no page of another site knows
 */
export function isForeignPost(headers: IncomingHttpHeaders, isBearer: boolean): boolean {
  const site = of(headers, 'site');
  if (site !== undefined) return site !== 'same-origin';
  return headers.origin === undefined ? !isBearer : !isOwnOrigin(headers.origin, headers.host);
}

/** Whether a page of one of `origins`, which an operator has named, asks for the stream of changes (CORS). */
export function isInvited({ headers, method, url }: FastifyRequest, origins: readonly string[]): boolean {
  const isStream = /^(GET|HEAD|OPTIONS)$/.test(method) && url.split('?', 1)[0] === STREAM_PATH;
  return isStream && headers.origin !== undefined && origins.includes(headers.origin);
}

/**
 * Whether a page of another site reads without showing what it reads: it could not see the response, but a search costs
 * time. A link to a page is followed.
 */
export function isForeignRead(headers: IncomingHttpHeaders): boolean {
  const site = of(headers, 'site');
  if (site !== 'cross-site' && site !== 'same-site') return false;
  return of(headers, 'mode') !== 'navigate' || of(headers, 'dest') !== 'document';
}
