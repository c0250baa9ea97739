// @module-tag slow
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { browserAvailable, useBrowser } from '../support/browser.ts';
import { hostileDaemon } from './scene.ts';

interface Finding {
  readonly impact: string;
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** What axe-core finds serious or critical. */
async function seriousFindings(page: Page, options: object = {}): Promise<string[]> {
  const given = JSON.stringify({ resultTypes: ['violations'], ...options });
  const violations = await page.evaluate<readonly Finding[]>(
    `axe.run(document, ${given}).then(({ violations }) => violations)`,
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`));
}

/** Pages of a kind that are visited: the rest look alike. */
const EACH_KIND = 2;

/** The kind of a page: `/runs/12` and `/runs/13` are one. */
function kindOf(path: string): string {
  const { pathname, searchParams } = new URL(path, 'http://localhost');
  return [pathname.replace(/^(\/[^/]+)\/.+$/, '$1/*'), ...new Set(searchParams.keys())].join(' ');
}

/** Opens every kind of page that links lead to, from the overview on. */
async function crawl(page: Page, url: string, look: (path: string) => Promise<void>): Promise<string[]> {
  const kinds = new Map<string, number>();
  const found = ['/'];
  const visited: string[] = [];
  const known = new Set(found);
  for (let path = found.shift(); path !== undefined; path = found.shift()) {
    const kind = kindOf(path);
    const seen = kinds.get(kind) ?? 0;
    if (seen >= EACH_KIND) continue;
    kinds.set(kind, seen + 1);
    visited.push(path);
    const answer = await page.request.get(`${url}${path}`);
    expect(`${answer.status()} ${path}`).toBe(`200 ${path}`);
    if (!answer.headers()['content-type']?.startsWith('text/html')) continue;
    await page.goto(`${url}${path}`);
    await look(path);
    const links = await page.evaluate<string[]>(`[...document.querySelectorAll('a[href]')].map((a) => a.href)`);
    for (const link of links) {
      const { origin, pathname, search } = new URL(link);
      const next = pathname + search;
      if (origin !== url || known.has(next)) continue;
      known.add(next);
      found.push(next);
    }
  }
  return visited;
}

describe.skipIf(!browserAvailable)('every page', { tags: ['stores'] }, () => {
  const visit = useBrowser();

  it('every page has no serious finding of axe-core and runs nothing of a hostile catalog, in light and dark, wide and narrow', async () => {
    const { url } = await hostileDaemon();
    const { page } = await visit({ viewport: { width: 390, height: 844 } });
    const visited = await crawl(page, url, async (path) => {
      // Not a script element, which the page's CSP would refuse.
      await page.evaluate(axe.source);
      const light = await seriousFindings(page);
      await page.emulateMedia({ colorScheme: 'dark' });
      const dark = await seriousFindings(page, { runOnly: ['color-contrast'] });
      await page.emulateMedia({ colorScheme: 'light' });
      expect({ path, light, dark }).toEqual({ path, light: [], dark: [] });
      const foreign = `[...document.querySelectorAll('script:not([src]), iframe, [onerror], [onload], [href^=javascript]')]
        .map((element) => element.outerHTML)`;
      const tooWide = `[...document.querySelectorAll('main *')]
        .filter((one) => one.getBoundingClientRect().right > innerWidth && one.closest('.wide') === null)
        .map((element) => element.outerHTML.slice(0, 300))`;
      const cut = `[...document.querySelectorAll('.wide')]
        .filter((one) => one.scrollWidth > one.clientWidth).map((element) => element.ariaLabel)`;
      const found = {
        foreign: await page.evaluate(foreign),
        tooWide: await page.evaluate(tooWide),
        cut: await page.evaluate(cut),
      };
      expect({ path, ...found }).toEqual({ path, foreign: [], tooWide: [], cut: [] });
      expect(await page.evaluate('window.hacked')).toBeUndefined();
    });
    expect(visited).toContain('/sinks');
  });
});
