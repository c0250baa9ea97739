import { existsSync, readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';

/** The text without fenced blocks. */
function proseOf(page: string): string {
  return page.replace(/^```[\s\S]*?^```$/gm, '');
}

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page: string): string[] {
  return [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/**
 * Relative links that do not resolve to a file within `directory`, or to a heading of it.
 * @param pages paths in `directory`
 */
export function brokenLinks(directory: string, pages: readonly string[]): { links: number; broken: string[] } {
  const read = (path: string): string => readFileSync(join(directory, path), 'utf8');
  const links = pages.flatMap((page) =>
    [...proseOf(read(page)).matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].map(([link, file = '', anchor]) => ({
      where: `${page}: ${link.slice(1)}`,
      to: file === '' ? page : normalize(join(page, '..', file)),
      anchor,
    })),
  );
  const broken = links.filter(({ to, anchor }) => {
    if (to.startsWith('..') || !existsSync(join(directory, to))) return true;
    return anchor !== undefined && !anchorsOf(read(to)).includes(anchor);
  });
  return { links: links.length, broken: broken.map(({ where }) => where) };
}
