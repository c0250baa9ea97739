import type { ComponentChildren } from 'preact';
import { count } from '../../report/text.ts';
import { type Row, type Said, saidOf } from '../../shown/shown-row.ts';
import { Facts } from './page-facts.tsx';
import { Table } from './page-table.tsx';
import { When } from './page-time.tsx';
import { Shown } from './untrusted-text.tsx';

/* Things as their rows in `src/shown` declare them, on pages. */

/** Characters of a text in a table, and in a fact. */
const MOST = { cell: 500, fact: 2_000 };

function Part({ said: { text, href, share, at = null }, most }: { readonly said: Said; readonly most: number }) {
  const words = typeof text === 'number' ? count(text) : text !== undefined && <Shown text={text} most={most} />;
  return (
    <>
      {href === undefined ? words : <a href={href}>{words}</a>}
      {at !== null && text !== undefined && ', '}
      {at !== null && <When at={at} />}
      {share !== undefined && (
        <>
          {' '}
          <progress max={1} value={Math.min(1, Math.max(0, share))} aria-label={`${text}`} />
        </>
      )}
    </>
  );
}

/** What a row says of a thing, part by part. Short texts with a tone are marks, but 0 is not. */
export function partsOf<Of>(row: Row<Of>, of: Of, most = MOST.fact) {
  // A long text in a table leaves its time to the thing's own page.
  const isTimeless = row.list === 'long' && most === MOST.cell;
  return saidOf(row, of).map((said) => {
    const at = isTimeless && said.text !== undefined ? null : (said.at ?? null);
    const part = <Part said={{ ...said, at }} most={most} />;
    if (said.text === 0) return part;
    return row.tone === undefined || row.list !== 'column' ? (
      part
    ) : (
      <strong class={`mark ${row.tone(of)}`}>{part}</strong>
    );
  });
}

interface ShownProps<Of> {
  readonly caption: string;
  readonly isCaptionHidden?: boolean;
  readonly rows: readonly Row<Of>[];
  readonly all: readonly Of[];
  readonly isNamed?: boolean;
  readonly idOf?: (of: Of) => string;
  /** Cells that a page makes by itself, by their heads: instead of the one of a row, or behind all. */
  readonly cells?: Readonly<Record<string, (of: Of) => ComponentChildren>>;
}

/** Things in a table: the columns of their rows. Columns of numbers are aligned to the right. */
export function ShownTable<Of>({ rows, all, cells: own = {}, ...table }: ShownProps<Of>) {
  const columns = rows.filter(({ list, label }) => list !== undefined && label !== undefined);
  const isNumber = (row: Row<Of>) => all.some((of) => typeof saidOf(row, of)[0]?.text === 'number');
  const cell = (row: Row<Of>, of: Of) => {
    const parts = partsOf(row, of, MOST.cell);
    return parts.length > 1 ? parts.map((part) => <div>{part}</div>) : (parts[0] ?? <span class="soft">–</span>);
  };
  const cells = columns.map((row) => [row.label, (of: Of) => cell(row, of)] as const);
  const numbers = columns.flatMap((row) => (row.label !== undefined && isNumber(row) ? [row.label] : []));
  return <Table {...table} columns={{ ...Object.fromEntries(cells), ...own }} numbers={numbers} rows={all} />;
}

interface FactsProps<Of> {
  readonly rows: readonly Row<Of>[];
  readonly of: Of;
  /** Facts that a page makes by itself, behind those of the rows. */
  readonly more?: Readonly<Record<string, ComponentChildren>>;
  readonly areBoxed?: boolean;
}

/** A thing by its facts, on its own page. */
export function ShownFacts<Of>({ rows, of, more = {}, areBoxed = false }: FactsProps<Of>) {
  const facts = rows.flatMap((row) => (row.label === undefined ? [] : [[row.label, partsOf(row, of)] as const]));
  return <Facts known={{ ...Object.fromEntries(facts), ...more }} areBoxed={areBoxed} />;
}
