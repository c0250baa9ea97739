import type { Clock } from '../../base/clock.ts';
import { sectionHtml } from './layout.tsx';
import type { Content } from './page-view.ts';

/*
 * Browsers that show the same page share its renderings.
 *
 * Pages are rendered one after another, with a pause after each, so that however many different pages are open, all of
 * them together take a small part of the time. With many pages open, each is updated less often.
 */

/** Pause between two renderings of live sections, milliseconds. */
export const RENDER_EVERY_MS = 1_000;
/** The pause after a rendering is this many times as long as the rendering, so that the loader is not slowed down. */
const PAUSE = 60;

/** The inside of each section, by its id. */
type Html = ReadonlyMap<string, string>;

/** A page that browsers follow. */
export interface SharedPage {
  /** The number of browsers that follow it. A page without followers is not rendered. */
  followers: number;
  /** Whether any section is live. A page that is over changes no more. */
  isLive: boolean;
  /** Its live sections as of now, or less than half a second ago. @throws what rendering threw */
  readonly current: () => Promise<Html>;
}

/**
 * @param stopping aborted when nothing is to be rendered any more
 * @returns a function that renders a page at once; it throws what `show` throws
 */
export function createRendering(clock: Clock, stopping: AbortSignal) {
  /** The end of the rendering before, and of the pause after it. */
  let turn: Promise<void> = Promise.resolve();

  return (show: () => Content): SharedPage => {
    /** Sections that were live once: their last state is sent as well. */
    const followed = new Set<string>();
    let rendered = { html: new Map<string, string>(), at: 0 };
    let rendering: Promise<Html> | null = null;

    function render(): Html {
      const { sections } = show();
      const html = new Map<string, string>();
      for (const section of sections) {
        if (section.live) followed.add(section.id);
        if (followed.has(section.id)) html.set(section.id, sectionHtml(section));
      }
      page.isLive = sections.some((section) => section.live);
      rendered = { html, at: clock.now() };
      return html;
    }

    function renderInTurn(): Promise<Html> {
      let tookMs = 0;
      const html = turn.then(() => {
        const startedAt = performance.now();
        try {
          return page.followers === 0 || stopping.aborted ? rendered.html : render();
        } finally {
          tookMs = performance.now() - startedAt;
        }
      });
      const pause = () => clock.sleep(tookMs * PAUSE, stopping).catch(() => {});
      turn = html.then(pause, pause);
      return html;
    }

    const page: SharedPage = {
      followers: 0,
      isLive: true,
      current: async () => {
        if (Math.abs(clock.now() - rendered.at) < RENDER_EVERY_MS / 2) return rendered.html;
        rendering ??= renderInTurn().finally(() => {
          rendering = null;
        });
        return await rendering;
      },
    };
    render();
    return page;
  };
}
