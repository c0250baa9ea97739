import type { ComponentChildren } from 'preact';

interface TableProps<Row> {
  readonly caption: string;
  /** Whether only screen readers get the caption, because the heading above says the same. */
  readonly isCaptionHidden?: boolean;
  /** Columns by their heads: the content of a row's cell. */
  readonly columns: Readonly<Record<string, (row: Row) => ComponentChildren>>;
  /** Heads of columns with numbers, which are aligned to the right. */
  readonly numbers?: readonly string[];
  /** Whether the first cell of a row names it. */
  readonly isNamed?: boolean;
  readonly rows: readonly Row[];
  /** The id of a row's element. */
  readonly idOf?: (row: Row) => string;
}

/** A table: on a phone its cells stand one below the other, each with its head; on paper and elsewhere it scrolls by itself. */
export function Table<Row>(props: TableProps<Row>) {
  const { caption, isCaptionHidden = false, columns, numbers = [], isNamed = true, rows, idOf } = props;
  const cells = Object.entries(columns);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a section of the page is something else
    <div class="wide" tabindex={0} role="region" aria-label={caption}>
      <table>
        {!isCaptionHidden && <caption>{caption}</caption>}
        <thead>
          <tr>
            {cells.map(([head]) => (
              <th scope="col">{head}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr id={idOf?.(row)}>
              {cells.map(([head, cell], at) =>
                isNamed && at === 0 ? (
                  <th scope="row">{cell(row)}</th>
                ) : (
                  <td class={numbers.includes(head) ? 'number' : undefined} data-head={head}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
