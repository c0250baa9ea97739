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

interface TableProps {
  readonly label: string;
  readonly caption?: string;
  readonly heads: readonly string[];
  readonly class?: string;
  /** Its rows. */
  readonly children: ComponentChildren;
}

export function Table({ label, caption, heads, children, ...more }: TableProps) {
  return (
    <Wide label={label}>
      <table {...more}>
        {caption !== undefined && <caption>{caption}</caption>}
        <thead>
          <tr>
            {heads.map((head) => (
              <th scope="col">{head}</th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </Wide>
  );
}
