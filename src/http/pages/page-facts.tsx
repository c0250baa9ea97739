import type { ComponentChildren } from 'preact';

/** Facts by their names; null or false for a fact that is left out. A name may have several values. */
export type Known = Readonly<Record<string, ComponentChildren | readonly ComponentChildren[]>>;

const rowsOf = (known: Known) =>
  Object.entries(known).flatMap(([name, value]) => {
    const values = (Array.isArray(value) ? value : [value]).filter((one) => one !== null && one !== false);
    return values.length === 0 ? [] : { name, values };
  });

export function Facts({ known }: { readonly known: Known }) {
  return (
    <dl>
      {rowsOf(known).map(({ name, values }) => (
        <>
          <dt>{name}</dt>
          {values.map((value) => (
            <dd>{value}</dd>
          ))}
        </>
      ))}
    </dl>
  );
}

/** The same, in boxes next to each other. */
export function Figures({ known }: { readonly known: Known }) {
  return (
    <dl class="figures">
      {rowsOf(known).map(({ name, values }) => (
        <div>
          <dt>{name}</dt>
          <dd>{values}</dd>
        </div>
      ))}
    </dl>
  );
}
