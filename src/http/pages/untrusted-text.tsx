import { printable } from '@catchword/base/printable';
import { excerpt } from '../../report/product-text.ts';
import { productPath } from '../../shown/shown-change.ts';

/** At most `most` characters of text from outside, on one line, with unprintable characters escaped. */
export function short(text: string, most: number): string {
  return printable(excerpt(text, 0, Math.min(most, text.length)));
}

/** Characters of an error or reason on the overview; its own page has all of it. */
const MAX_SHOWN = 200;

export function clipped(text: string): string {
  return short(text, MAX_SHOWN);
}

/** With a large first letter. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Text from elsewhere as a sentence of a page, clipped. */
export function sentence(text: string): string {
  const shown = clipped(text);
  return `${capitalized(shown)}${/[.!?…]$/.test(shown) ? '' : '.'}`;
}

interface ShownProps {
  readonly text: string | null;
  /** The most characters that are shown. */
  readonly most?: number;
}

/** Text from outside. Its direction of writing does not affect the text around it. */
export function Shown({ text, most = 300 }: ShownProps) {
  return text === null ? <span class="soft">–</span> : <bdi>{short(text, most)}</bdi>;
}

/** A product by its title, or by its key if it has none. */
export function ProductLink({ vbid, title, at }: { vbid: string; title: string | null; at?: number }) {
  return (
    <a href={productPath(vbid, at)}>
      <Shown text={title ?? vbid} most={120} />
    </a>
  );
}
