import { CatchwordError } from '@catchword/base/errors';
import formbody from '@fastify/formbody';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { namedProblems } from '../../state/problems.ts';
import type { RouteParts } from '../response-writer.ts';
import { LIVE_PATH } from '../sse/open-streams.ts';
import { actions, addActions } from './actions-page.tsx';
import { changes } from './changes-page.tsx';
import { sendErrorPage } from './error-page.tsx';
import { sendPage } from './layout.tsx';
import { createLivePages } from './live.ts';
import { overview } from './overview-page.tsx';
import { addAssets } from './page-assets.ts';
import type { Address, PageParts, Show, View, Visit } from './page-view.ts';
import { problems } from './problems-page.tsx';
import { product } from './product-page.tsx';
import { products } from './products-page.tsx';
import { run } from './run-page.tsx';
import { rejected } from './run-rejected.tsx';
import { runs } from './runs-page.tsx';
import { sink } from './sink-page.tsx';
import { sinks } from './sinks-page.tsx';
import { system } from './system-page.tsx';

/** Every page of the site. */
const VIEWS: readonly View[] = [
  overview,
  runs,
  run,
  rejected,
  products,
  product,
  changes,
  sinks,
  sink,
  problems,
  actions,
  system,
];

function addressOf({ params, url }: FastifyRequest): Address {
  const [, query = ''] = /\?(.*)$/.exec(url) ?? [];
  return { params: params as Record<string, string>, query: new URLSearchParams(query) };
}

type PageOptions = PageParts & RouteParts;

async function visitOf({ find }: View, request: FastifyRequest, parts: PageOptions): Promise<Visit> {
  const address = addressOf(request);
  try {
    return { ...address, found: await find?.(parts, address) };
  } catch (error) {
    if (!(error instanceof CatchwordError)) throw error;
    return { ...address, problem: `${error.message}. ${error.hint ?? ''}` };
  }
}

/**
 * Serves the pages, and for each the stream of its live sections at `/live` and its path.
 * @returns a function that ends all streams
 */
export function addPages(app: FastifyInstance, parts: PageOptions): () => Promise<void> {
  const live = createLivePages(parts);
  addAssets(app);
  // For the forms of the login, too.
  app.register(formbody);
  app.decorate('sendErrorPage', sendErrorPage);
  addActions(app, parts);

  // Some components read the file when they are rendered.
  const inOneState =
    (view: View, visit: Visit): Show =>
    (render) =>
      parts.store.read(() => render(view.show(parts, visit)));

  for (const view of VIEWS) {
    app.get(view.path, async (request, reply) => {
      const { pathname } = new URL(request.url, 'http://localhost');
      await view.prepare?.(parts, addressOf(request));
      const show = inOneState(view, await visitOf(view, request, parts));
      // Only a document has a title: sections are rendered each second.
      show((content) => {
        const open = namedProblems(parts.state()).length;
        void sendPage(reply, { ...content, problems: open }, pathname);
      });
      return reply;
    });
    app.get(LIVE_PATH + view.path, { exposeHeadRoute: false }, async (request, reply) => {
      const address = addressOf(request);
      await view.prepare?.(parts, address);
      return live.follow(request, reply, inOneState(view, address));
    });
  }

  return live.stop;
}
