import type { ComponentChildren } from 'preact';
import { printable } from '../../printable.ts';
import { excerpt } from '../../report/product-text.ts';
import { moment } from '../../report/text.ts';

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

/** @param at milliseconds since 1970 */
export function Moment({ at }: { readonly at: number }) {
  return <time dateTime={new Date(at).toISOString()}>{`${moment(at)} UTC`}</time>;
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

/** What may be wider than the window: it scrolls by itself, with the keyboard too. */
export function Wide({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, the keyboard cannot scroll it.
    // biome-ignore lint/a11y/useSemanticElements: <section> is for the sections of the page.
    <div class="wide" tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}
