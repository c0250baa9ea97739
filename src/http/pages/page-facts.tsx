import type { ComponentChildren } from 'preact';

interface FactsProps {
  /** Facts by their names; null or false for a fact that is left out. A name may have several values. */
  readonly known: Readonly<Record<string, ComponentChildren | readonly ComponentChildren[]>>;
  /** Whether they are in boxes next to each other. */
  readonly areBoxed?: boolean;
}

export function Facts({ known, areBoxed = false }: FactsProps) {
  const rows = Object.entries(known).map(([name, value]) => {
    const values: readonly ComponentChildren[] = Array.isArray(value) ? value : [value];
    return { name, values: values.filter((one) => one !== null && one !== false) };
  });
  return (
    <dl class={areBoxed ? 'figures' : undefined}>
      {rows.map(
        ({ name, values }) =>
          values.length > 0 && (
            <div>
              <dt>{name}</dt>
              {values.map((value) => (
                <dd>{value}</dd>
              ))}
            </div>
          ),
      )}
    </dl>
  );
}
