import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../../log.ts';
import { errorFields } from '../../log.ts';
import { sendError } from '../http-error.ts';
import { addAssets } from './assets.ts';
import { changes } from './changes.tsx';
import { documentHtml } from './layout.tsx';
import { createLivePages } from './live.ts';
import { overview } from './overview.tsx';
import { product } from './product.tsx';
import { products } from './products.tsx';
import { sink } from './sink.tsx';
import { sinks } from './sinks.tsx';
import type { Content, PageParts, View, Visit } from './view.ts';

/** Every page of the site. */
const VIEWS: readonly View[] = [overview, products, product, changes, sinks, sink];

/** Live pages that may be open at once. For safety: each is rendered every second. */
const MAX_LIVE = 50;

const HTML_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

function visitOf({ params, url }: FastifyRequest): Visit {
  const [, query = ''] = /\?(.*)$/.exec(url) ?? [];
  return { params: params as Record<string, string>, query: new URLSearchParams(query) };
}

export interface PageOptions extends PageParts {
  readonly log: Logger;
}

/**
 * Serves the pages, and for each the stream of its live sections at `/live` and its path.
 * @returns a function that ends all streams
 */
export function addPages(app: FastifyInstance, { log, ...parts }: PageOptions): () => Promise<void> {
  const live = createLivePages(parts.clock);
  const open = new Map<AbortController, Promise<void>>();
  let stopping = false;
  addAssets(app);

  const showOf = (view: View, request: FastifyRequest) => (): Content =>
    parts.store.read(() => view.show(parts, visitOf(request)));

  function follow(view: View, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    if (stopping || open.size >= MAX_LIVE) {
      return sendError(reply, {
        code: 'TOO_MANY_STREAMS',
        message: `${open.size} pages are followed, which is the limit`,
        hint: 'Close pages that are not in use, then reload this one.',
        headers: { 'retry-after': '10' },
      });
    }
    const show = showOf(view, request);
    // A page that does not exist is an error, not an empty stream.
    show();
    reply.headers({ 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' }).hijack();
    const { raw } = reply;
    raw.writeHead(200, reply.getHeaders() as Record<string, string>);
    raw.socket?.setTimeout(0);
    raw.on('error', () => {});
    const ending = new AbortController();
    raw.once('close', () => ending.abort());
    const done = live
      .follow(request.url, show, raw, ending.signal)
      .catch((error: unknown) => log.error(errorFields(error), 'a live page could not be rendered'))
      .finally(() => {
        open.delete(ending);
        raw.end();
      });
    open.set(ending, done);
    return reply;
  }

  for (const view of VIEWS) {
    app.get(view.path, async (request, reply) => {
      const { pathname } = new URL(request.url, 'http://localhost');
      return reply.headers(HTML_HEADERS).send(documentHtml(showOf(view, request)(), pathname, `/live${request.url}`));
    });
    app.route({
      method: 'GET',
      url: `/live${view.path}`,
      exposeHeadRoute: false,
      handler: async (request, reply) => follow(view, request, reply),
    });
  }

  return async () => {
    stopping = true;
    for (const ending of open.keys()) ending.abort();
    await Promise.all(open.values());
  };
}
