import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../clock.ts';
import { sectionHtml } from './layout.tsx';
import type { Content } from './view.ts';

/** How often live sections are rendered, milliseconds. */
const EVERY_MS = 1_000;
/** A comment is sent if nothing changed for this long, so that proxies keep the connection. */
const HEARTBEAT_MS = 15_000;
/** How long a browser waits before it connects again, milliseconds. */
const RETRY_MS = 2_000;

type Show = () => Content;

/**
 * Renders what browsers show, and sends each the live sections that have changed. Browsers that show the same page share
 * the rendering.
 */
export function createLivePages(clock: Clock) {
  const rendered = new Map<string, { readonly at: number; readonly html: ReadonlyMap<string, string> }>();

  function htmlOf(url: string, show: Show): ReadonlyMap<string, string> {
    const now = clock.now();
    const kept = rendered.get(url);
    if (kept !== undefined && Math.abs(now - kept.at) < EVERY_MS / 2) return kept.html;
    const live = show().sections.filter((section) => section.live);
    const html = new Map(live.map((section) => [section.id, sectionHtml(section)]));
    rendered.set(url, { at: now, html });
    return html;
  }

  /** A browser that does not take what was sent gets the newest state when it does. */
  async function send(response: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
    if (!response.write(text)) await once(response, 'drain', { signal }).catch(() => {});
  }

  /**
   * Sends changed sections into a response whose headers were sent, until `signal` aborts.
   * @param url identifies the page
   */
  async function follow(url: string, show: Show, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const sent = new Map<string, string>();
    let sentAt = clock.now();
    await send(response, `retry: ${RETRY_MS}\n\n`, signal);
    while (!signal.aborted) {
      const html = htmlOf(url, show);
      const changed = [...html].filter(([id, text]) => sent.get(id) !== text);
      for (const [id, text] of changed) {
        sent.set(id, text);
        sentAt = clock.now();
        await send(response, `event: section\ndata: ${JSON.stringify({ id, html: text })}\n\n`, signal);
      }
      if (clock.now() - sentAt >= HEARTBEAT_MS) {
        sentAt = clock.now();
        await send(response, ': still here\n\n', signal);
      }
      await clock.sleep(EVERY_MS, signal).catch(() => {});
    }
  }

  return {
    follow: async (url: string, show: Show, response: ServerResponse, signal: AbortSignal): Promise<void> => {
      try {
        await follow(url, show, response, signal);
      } finally {
        rendered.delete(url);
      }
    },
  };
}
