import { printable } from '../../base/printable.ts';
import { excerpt } from '../../report/product-text.ts';

/** At most `most` characters of text from outside, on one line, with unprintable characters escaped. */
export function short(text: string, most: number): string {
  return printable(excerpt(text, 0, Math.min(most, text.length)));
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

/** The page of a product, right after a change if `at` is given. */
export function productPath(vbid: string, at?: number): string {
  return `/products/${encodeURIComponent(vbid)}${at === undefined ? '' : `?at=${at}`}`;
}

/** A product by its title, or by its key if it has none. */
export function ProductLink({ vbid, title, at }: { vbid: string; title: string | null; at?: number }) {
  return (
    <a href={productPath(vbid, at)}>
      <Shown text={title ?? vbid} most={120} />
    </a>
  );
}
