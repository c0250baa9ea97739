import { gzipSync } from 'node:zlib';
import type { FastifyReply } from 'fastify';
import { underPrefix } from '../path-prefix.ts';
import { acceptsGzip } from './page-assets.ts';

/** Headers that forbid everything to foreign markup, should any get into a page. HSTS belongs to a proxy, as TLS does. */
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  vary: 'accept-encoding',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  // Forms need it: without a referrer, browsers send `Origin: null`, and /actions could not return to its page.
  'referrer-policy': 'same-origin',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy':
    'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), publickey-credentials-get=(), usb=()',
};

/** Sends a whole document. Every page goes through here. */
export function sendHtml(reply: FastifyReply, markup: string): FastifyReply {
  const html = underPrefix(reply.request, markup);
  reply.headers(HEADERS);
  if (!acceptsGzip(reply.request.headers)) return reply.send(html);
  return reply.header('content-encoding', 'gzip').send(gzipSync(html, { level: 4 }));
}
