import type { ComponentChildren } from 'preact';

/** Around a table that may be wider than the screen: it scrolls by itself, also with the keyboard. */
export function Wide({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a section of the page is something else
    <div class="wide" tabindex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}
