import type { FastifyReply } from 'fastify';
import { documentHtml } from './layout.tsx';
import type { Content } from './view.ts';

const HTML_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

/**
 * Sends a page.
 * @param path where the browser is, for the navigation
 * @param live address of the stream of its live sections, if it has any
 */
export function sendPage(reply: FastifyReply, content: Content, path: string, live = ''): FastifyReply {
  return reply.headers(HTML_HEADERS).send(documentHtml(content, path, live));
}
