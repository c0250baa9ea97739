import type { FastifyReply, FastifyRequest } from 'fastify';
import { CatchwordError } from '../../base/errors.ts';
import { errorFields } from '../../base/log.ts';
import { underPrefix } from '../path-prefix.ts';
import { createWriter, type EndCode, endBlock, type RouteParts } from '../response-writer.ts';
import { createOpenStreams, refuse } from '../sse/open-streams.ts';
import type { Content } from './page-view.ts';
import { createRendering, RENDER_EVERY_MS, type SharedPage } from './shared-rendering.ts';

/*
 * Each browser that shows a page follows its live sections:
 *
 *     render the page, or share a rendering that is less than half a second old
 *          │
 *     send the sections that have changed ──► none is live any more: OVER, and the browser loads the page once more
 *          │
 *     wait a second, and again …
 */

/** A comment is sent if nothing changed for this long, so that proxies keep the connection. */
const HEARTBEAT_MS = 15_000;
/** Pages that may be followed at once. For safety. */
const MAX_LIVE = 100;
/** Pause of a browser before it connects again, milliseconds. */
const RETRY_MS = 2_000;
/** The same if the page could not be rendered. */
const RETRY_AFTER_ERROR_MS = 10_000;

/** Whether the page itself is the error, so that it does not pass. */
function isGone(error: unknown): boolean {
  return error instanceof CatchwordError && (error.code === 'NOT_FOUND' || error.code === 'USAGE');
}

/** Writes the live sections of a page until `ending` aborts; it aborts `ending` itself when the page is over or fails. */
async function streamSections(
  reply: FastifyReply,
  ending: AbortController,
  page: SharedPage,
  parts: RouteParts,
): Promise<void> {
  const { clock, log } = parts;
  const { signal } = ending;
  const writer = createWriter(reply.raw, ending, parts);
  const sent = new Map<string, string>();
  let sentAt = clock.now();
  let retryMs = RETRY_MS;

  async function write(text: string): Promise<void> {
    await writer.write(text);
    sentAt = clock.now();
  }

  async function update(): Promise<void> {
    for (const [id, html] of await page.current()) {
      if (signal.aborted || sent.get(id) === html) continue;
      sent.set(id, html);
      await write(`event: section\ndata: ${JSON.stringify({ id, html: underPrefix(reply.request, html) })}\n\n`);
    }
    if (!page.isLive) ending.abort('OVER' satisfies EndCode);
    // Also if the clock was set back.
    else if (Math.abs(clock.now() - sentAt) >= HEARTBEAT_MS) await write(': still here\n\n');
  }

  try {
    await write(`retry: ${RETRY_MS}\n\n`);
    while (!signal.aborted) {
      await update();
      await clock.sleep(RENDER_EVERY_MS, signal).catch(() => {});
    }
  } catch (error) {
    retryMs = RETRY_AFTER_ERROR_MS;
    if (!isGone(error)) log.error(errorFields(error), 'a live page could not be rendered');
    ending.abort((isGone(error) ? 'NOT_FOUND' : 'INTERNAL') satisfies EndCode);
  }
  if (signal.reason !== 'GONE') await writer.end(endBlock(signal.reason as EndCode, retryMs));
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

  async function begin(reply: FastifyReply, key: string, page: SharedPage): Promise<void> {
    page.followers++;
    pages.set(key, page);
    try {
      await streams.begin(reply, (_, ending) => streamSections(reply, ending, page, parts));
    } finally {
      page.followers--;
      if (page.followers === 0) pages.delete(key);
    }
  }

  return {
    /**
     * Answers with the stream of a page's live sections. Browsers at the same address share the rendering.
     * @param show throws CatchwordError NOT_FOUND or USAGE for a page that does not exist
     * @throws the same: an EventSource does not ask again for such a page
     */
    follow: (request: FastifyRequest, reply: FastifyReply, show: () => Content): FastifyReply => {
      const refusal = streams.refusal(request, reply);
      if (refusal !== null) return refusal;
      try {
        void begin(reply, request.url, pages.get(request.url) ?? render(show));
        return reply;
      } catch (error) {
        if (isGone(error)) throw error;
        log.error(errorFields(error), 'a live page could not be rendered');
        const hint = "See catchword's log.";
        return refuse(request, reply, clock, { code: 'INTERNAL', message: 'the page could not be rendered', hint });
      }
    },
    /** Ends all streams, later ones too. */
    stop: async (): Promise<void> => {
      stopping.abort();
      await streams.stop();
    },
  };
}
