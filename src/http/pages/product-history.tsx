import { differingParts, type PartChange, partChanges, WITHOUT_FIELDS } from '../../report/product-text.ts';
import { count } from '../../report/text.ts';
import { productPath, RECORDED } from '../../shown/shown-change.ts';
import { labelsOf } from '../../shown/shown-row.ts';
import { type FieldChange, type ProductChange, productChanges } from '../../store/history/history.ts';
import type { ProductRow } from '../../store/rows/product-rows.ts';
import type { Store } from '../../store/store.ts';
import { ShownTable } from './page-shown.tsx';
import type { Section } from './page-view.ts';
import { Shown, short } from './untrusted-text.tsx';

const { seq: SEQ = '' } = labelsOf(RECORDED);
/** Changes on one page. */
const MOST = 50;
/** Changed fields that are shown of one change. */
const MOST_FIELDS = 20;
/** Parts that are shown of one changed field, such as the prices of the variants. */
const MOST_PARTS = 6;

function Value({ text }: { readonly text: string | null }) {
  return text === null ? <span class="soft">not set</span> : <Shown text={text} most={500} />;
}

function PartRow({ path, part: { before, after } }: { readonly path: string; readonly part: PartChange }) {
  const [was, is] = differingParts(before, after);
  return (
    <>
      <dt>
        <Shown text={path} most={120} />
      </dt>
      <dd>
        <del>
          <span class="spoken">before: </span>
          <Value text={was} />
        </del>{' '}
        <span aria-hidden="true">→</span>{' '}
        <ins>
          <span class="spoken">after: </span>
          <Value text={is} />
        </ins>
      </dd>
    </>
  );
}

function FieldRows({ field: { field, before, after } }: { readonly field: FieldChange }) {
  const parts = partChanges(before, after);
  const rest = parts.length - MOST_PARTS;
  return (
    <>
      {parts.slice(0, MOST_PARTS).map((part) => (
        <PartRow path={[field, ...part.path].join(' › ')} part={part} />
      ))}
      {rest > 0 && <dd>{`and ${count(rest)} more in ${short(field, 80)}`}</dd>}
    </>
  );
}

function Fields({ op, fields }: ProductChange) {
  if (fields.length === 0) return WITHOUT_FIELDS[op];
  const rest = fields.length - MOST_FIELDS;
  return (
    <>
      <dl class="fields">
        {fields.slice(0, MOST_FIELDS).map((field) => (
          <FieldRows field={field} />
        ))}
      </dl>
      {rest > 0 && `and ${count(rest)} more fields`}
    </>
  );
}

/**
 * The changes of a product, newest first.
 * @param row the product as it is now, or as of `at`
 * @param given the change before which the page starts; null: the newest
 */
export function historySection(store: Store, row: ProductRow, at: number | null, given: number | null): Section {
  const { vbid } = row;
  const { changes, hasOlder } = productChanges(store, row, given ?? Number.MAX_SAFE_INTEGER, MOST);
  const oldest = changes.at(-1);
  const atPart = at === null ? '' : `at=${at}&`;
  const content =
    changes.length === 0 ? (
      <p>The log has no older change of this product.</p>
    ) : (
      <ShownTable
        caption="Changes, the newest first. A change leads to the product as it was right after it."
        rows={RECORDED}
        all={changes}
        cells={{
          [SEQ]: ({ seq }) => (
            <a href={productPath(vbid, seq)} aria-label={`The product as it was after change ${count(seq)}`}>
              {count(seq)}
            </a>
          ),
          'Fields before and after': (change) => <Fields {...change} />,
        }}
      />
    );
  const isCut = !hasOlder && oldest !== undefined && oldest.op !== 'created';
  return {
    id: 'history',
    title: 'History',
    content: (
      <>
        {content}
        {isCut && <p>Older changes were deleted from the log (CATCHWORD_LOG_RETENTION).</p>}
        <nav class="pages" aria-label="Pages of the history">
          {given !== null && (
            <a href={`${productPath(vbid)}${at === null ? '' : `?at=${at}`}#history`}>Newest changes</a>
          )}
          {hasOlder && oldest !== undefined && (
            <a href={`${productPath(vbid)}?${atPart}before=${oldest.seq}#history`}>Older changes</a>
          )}
        </nav>
      </>
    ),
  };
}
