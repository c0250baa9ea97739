import type { Clock } from '../../base/clock.ts';
import { sectionHtml } from './layout.tsx';
import type { Content } from './page-view.ts';

/*
 * Browsers that show the same page share its renderings.
 *
 * Pages are rendered one after another, with a pause after each, so that however many different pages are open, all of
 * them together take a small part of the time. With many pages open, each is updated less often.
 */

/** How often live sections are rendered, milliseconds. */
export const RENDER_EVERY_MS = 1_000;
/** The pause after a rendering is this many times as long as the rendering, so that the loader is not slowed down. */
const PAUSE = 60;

type Html = ReadonlyMap<string, string>;

/** A page that browsers follow. */
export interface SharedPage {
  followers: number;
  /** Sections that were live once: their last state is sent as well. */
  readonly sections: Set<string>;
  /** Whether any section is live. A page that is over changes no more. */
  isLive: boolean;
  html: Html;
  renderedAt: number;
  rendering: Promise<Html> | null;
}

/** @param stopping aborted when nothing is to be rendered any more */
export function createRendering(clock: Clock, stopping: AbortSignal) {
  /** When the next rendering may begin. */
  let turn: Promise<void> = Promise.resolve();
  function htmlOf(page: SharedPage, { sections }: Content): Html {
    const html = new Map<string, string>();
    for (const section of sections) {
      if (section.live) page.sections.add(section.id);
      if (page.sections.has(section.id)) html.set(section.id, sectionHtml(section));
    }
    const isLive = sections.some((section) => section.live);
    Object.assign(page, { html, isLive, renderedAt: clock.now() });
    return html;
  }

  async function renderInTurn(page: SharedPage, show: () => Content): Promise<Html> {
    const mine = turn;
    let pass = (): void => {};
    turn = new Promise((resolve) => {
      pass = resolve;
    });
    await mine;
    const startedAt = performance.now();
    try {
      return page.followers === 0 || stopping.aborted ? page.html : htmlOf(page, show());
    } finally {
      const pauseMs = (performance.now() - startedAt) * PAUSE;
      void clock
        .sleep(pauseMs, stopping)
        .catch(() => {})
        .then(pass);
    }
  }

  async function current(page: SharedPage, show: () => Content): Promise<Html> {
    if (Math.abs(clock.now() - page.renderedAt) < RENDER_EVERY_MS / 2) return page.html;
    page.rendering ??= renderInTurn(page, show).finally(() => {
      page.rendering = null;
    });
    return await page.rendering;
  }

  return {
    /** Renders a page at once. @throws what `show` throws */
    begin: (show: () => Content): SharedPage => {
      const page = {
        followers: 0,
        sections: new Set<string>(),
        isLive: true,
        html: new Map(),
        renderedAt: 0,
        rendering: null,
      };
      htmlOf(page, show());
      return page;
    },
    /** The page as of now, or less than half a second ago. @throws what `show` throws */
    current,
  };
}
