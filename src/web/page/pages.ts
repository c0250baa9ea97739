import type { FastifyInstance, FastifyRequest } from 'fastify';
import { LIVE_PATH } from '../sse-refusal.ts';
import { addAssets } from './assets.ts';
import { documentHtml } from './layout.tsx';
import { createLivePages, type LiveParts } from './live.ts';
import { overview } from './overview.tsx';
import type { Content, PageParts, View, Visit } from './view.ts';

/** Every page of the site. */
const VIEWS: readonly View[] = [overview];

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

export type PageOptions = PageParts & LiveParts;

/**
 * Serves the pages, and for each the stream of its live sections at `/live` and its path.
 * @returns a function that ends all streams
 */
export function addPages(app: FastifyInstance, parts: PageOptions): () => Promise<void> {
  const live = createLivePages(parts);
  addAssets(app);

  const showOf = (view: View, request: FastifyRequest) => (): Content =>
    parts.store.read(() => view.show(parts, visitOf(request)));

  for (const view of VIEWS) {
    app.get(view.path, async (request, reply) => {
      const { pathname } = new URL(request.url, 'http://localhost');
      return reply.headers(HTML_HEADERS).send(documentHtml(showOf(view, request)(), pathname, LIVE_PATH + request.url));
    });
    app.route({
      method: 'GET',
      url: LIVE_PATH + view.path,
      exposeHeadRoute: false,
      handler: async (request, reply) => live.follow(request, reply, { key: request.url, show: showOf(view, request) }),
    });
  }

  return live.stop;
}
