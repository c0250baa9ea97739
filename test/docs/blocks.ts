import { readdirSync, readFileSync } from 'node:fs';

const ROOT = new URL('../../', import.meta.url);

/** A fenced block of a document. */
export interface Block {
  readonly page: string;
  readonly language: string;
  readonly code: string;
}

/** Languages of which nothing is run: what programs print, and drawings. */
const SHOWN = ['text'];

const PAGES = [
  'README.md',
  ...readdirSync(new URL('docs', ROOT), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
    .sort(),
];

/** A block within a list is indented. */
const FENCE = /^( *)```(\w*)\n([\s\S]*?)^\1```$/gm;

/** Every block of the README and the documents that is code, page by page, in order. */
export const BLOCKS: readonly Block[] = PAGES.flatMap((page) =>
  [...readFileSync(new URL(page, ROOT), 'utf8').matchAll(FENCE)]
    .map(([, indent = '', language = '', text = '']) => ({
      page,
      language,
      code: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    }))
    .filter(({ language }) => !SHOWN.includes(language)),
);

/** The code of a page's blocks in a language. */
export function blocksOf(page: string, language: string): string[] {
  return BLOCKS.filter((block) => block.page === page && block.language === language).map(({ code }) => code);
}
