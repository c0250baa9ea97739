import type { Clock } from '@catchword/base/clock';
import { hasCode } from '@catchword/base/errors';
import { errorFields } from '@catchword/base/log';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { underPrefix } from '../path-prefix.ts';
import { type Messages, RETRY_MS, type RouteParts } from '../response-writer.ts';
import { createOpenStreams, refuse } from '../sse/open-streams.ts';
import { sectionHtml } from './layout.tsx';
import type { Content, Show } from './page-view.ts';

/*
 * Each browser that shows a page follows its live sections:
 *
 *     render the page, or share a rendering that is less than half a second old
 *          │
 *     send the sections that have changed
 *          │
 *     wait a second, and again …
 *
 * Pages are rendered one after another, with a pause after each, so that however many different pages are open, all of
 * them together take a small part of the time, unless a rendering takes seconds. With many pages open, each is updated
 * less often.
 */

/** Pause between two renderings of live sections, milliseconds. */
const RENDER_EVERY_MS = 1_000;
/** The pause after a rendering is this many times as long as the rendering, so that the loader is not slowed down. */
const PAUSE = 60;
/** The longest pause: a page is useful only while it is fresh, also where a rendering takes long or was interrupted. */
const MOST_PAUSE_MS = 10_000;
/** Pages that may be followed at once. For safety. */
const MAX_LIVE = 100;

/** The inside of each section, by its id. */
type Html = ReadonlyMap<string, string>;

/** A page that browsers follow. */
interface SharedPage {
  /** The number of browsers that follow it. A page without followers is not rendered. */
  followers: number;
  /** Its live sections as of now, or less than half a second ago. @throws what rendering threw */
  readonly current: () => Promise<Html>;
}

/** @returns a function that renders a page at once, and throws what `show` throws; later until `stopping` aborts */
function createRendering(clock: Clock, stopping: AbortSignal) {
  /** The end of the rendering before, and of the pause after it. */
  let turn: Promise<void> = Promise.resolve();

  return (show: Show): SharedPage => {
    let rendered = { html: new Map<string, string>(), at: 0 };
    let rendering: Promise<Html> | null = null;

    function render({ sections }: Content): Html {
      const shown = sections.filter((section) => section.live);
      rendered = { html: new Map(shown.map((section) => [section.id, sectionHtml(section)])), at: clock.now() };
      return rendered.html;
    }

    function renderInTurn(): Promise<Html> {
      let tookMs = 0;
      const html = turn.then(() => {
        const startedAt = performance.now();
        try {
          return page.followers === 0 || stopping.aborted ? rendered.html : show(render);
        } finally {
          tookMs = performance.now() - startedAt;
        }
      });
      const pause = () => clock.sleep(Math.min(tookMs * PAUSE, MOST_PAUSE_MS), stopping).catch(() => {});
      turn = html.then(pause, pause);
      return html;
    }

    const page: SharedPage = {
      followers: 0,
      current: async () => {
        if (Math.abs(clock.now() - rendered.at) < RENDER_EVERY_MS / 2) return rendered.html;
        rendering ??= renderInTurn().finally(() => {
          rendering = null;
        });
        return await rendering;
      },
    };
    show(render);
    return page;
  };
}

/** Sends browsers the live sections of what they show. */
export function createLivePages(parts: RouteParts) {
  const { clock, log } = parts;
  /** Pages that browsers follow, by everything that they depend on. */
  const pages = new Map<string, SharedPage>();
  const streams = createOpenStreams(parts, {
    most: MAX_LIVE,
    message: `${MAX_LIVE} pages are followed, which is the limit`,
    hint: 'Close pages that are not in use, then reload this one.',
  });
  const stopping = new AbortController();
  const render = createRendering(clock, stopping.signal);

  /** Writes the live sections of a page. */
  function sectionsOf(page: SharedPage, request: FastifyRequest): Messages['write'] {
    return async (write, ending) => {
      const sent = new Map<string, string>();
      await write(`retry: ${RETRY_MS}\n\n`);
      while (!ending.signal.aborted) {
        for (const [id, html] of await page.current()) {
          if (ending.signal.aborted || sent.get(id) === html) continue;
          sent.set(id, html);
          await write(`event: section\ndata: ${JSON.stringify({ id, html: underPrefix(request, html) })}\n\n`);
        }
        await clock.sleep(RENDER_EVERY_MS, ending.signal);
      }
    };
  }

  /** Names the reason why a page could not be rendered. If the page itself is the error, it does not pass. */
  function failed(error: unknown): 'NOT_FOUND' | 'INTERNAL' {
    if (hasCode(error, 'NOT_FOUND', 'USAGE')) return 'NOT_FOUND';
    log.error(errorFields(error), 'a live page could not be rendered');
    return 'INTERNAL';
  }

  async function begin(reply: FastifyReply, page: SharedPage): Promise<void> {
    const { url } = reply.request;
    page.followers++;
    pages.set(url, page);
    await streams.begin(reply, { write: sectionsOf(page, reply.request), failed });
    page.followers--;
    if (page.followers === 0) pages.delete(url);
  }

  return {
    /**
     * Answers with the stream of a page's live sections. Browsers at the same address share the rendering.
     * @throws CatchwordError NOT_FOUND or USAGE of `show`: an EventSource does not ask again for such a page
     */
    follow: (request: FastifyRequest, reply: FastifyReply, show: Show): FastifyReply => {
      const refusal = streams.refusal(request, reply);
      if (refusal !== null) return refusal;
      try {
        void begin(reply, pages.get(request.url) ?? render(show));
        return reply;
      } catch (error) {
        const code = failed(error);
        if (code === 'NOT_FOUND') throw error;
        const hint = "See catchword's log.";
        return refuse(request, reply, clock, { code, message: 'the page could not be rendered', hint });
      }
    },
    /** Ends all streams, later ones too. */
    stop: async (): Promise<void> => {
      stopping.abort();
      await streams.stop();
    },
  };
}
