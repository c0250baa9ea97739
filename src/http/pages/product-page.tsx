import { printableLines } from '@catchword/base/printable';
import { PRICE_FIELDS } from '@catchword/catalog/fields';
import { indentedJson } from '@catchword/catalog/json-text';
import type { ComponentChildren } from 'preact';
import { excerpt, productText } from '../../report/product-text.ts';
import { count, plural } from '../../report/text.ts';
import { productPath } from '../../shown/shown-change.ts';
import { productAsOf } from '../../store/history/history.ts';
import { parseMoment, seqOf } from '../../store/history/moment.ts';
import { requireProduct } from '../../store/rows/find-product.ts';
import type { ProductRow } from '../../store/rows/product-rows.ts';
import { Facts } from './page-facts.tsx';
import { Table } from './page-table.tsx';
import { When } from './page-time.tsx';
import { numberIn, type Section, type View } from './page-view.ts';
import { historySection } from './product-history.tsx';
import { Shown, short } from './untrusted-text.tsx';

/** Contributors and prices that are listed; a product may have a hundred thousand. */
const LISTED = 50;
/** Bodies up to this length are shown whole and indented, characters. */
const MOST_INDENTED = 64_000;
/** Characters that are shown of longer bodies. */
const MOST_RAW = 20_000;

/** A link, of a cover too: the page loads nothing from other servers. An address of another kind than http is only shown. */
function Link({ address }: { readonly address: string }) {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return <Shown text={address} />;
  return (
    <a href={url.href} rel="noreferrer noopener nofollow">
      <Shown text={address} />
    </a>
  );
}

function Fields({ fields }: Pick<ReturnType<typeof productText>, 'fields'>) {
  if (fields.length === 0) return <p>It has none of the known fields.</p>;
  const known = fields.map(({ label, isLink, texts }) => {
    const values: ComponentChildren[] = texts.slice(0, LISTED).map(({ text, role }) => (
      <>
        {isLink ? <Link address={text} /> : <Shown text={text} most={2_000} />}
        {role !== null && ', '}
        {role !== null && <Shown text={role} most={60} />}
      </>
    ));
    if (texts.length > LISTED) values.push(`and ${count(texts.length - LISTED)} more: see the JSON`);
    return [label, values];
  });
  return <Facts known={Object.fromEntries(known)} />;
}

type Price = readonly (string | null)[];

const PRICE_COLUMNS = Object.fromEntries(
  PRICE_FIELDS.map(({ label }, at) => [label, (price: Price) => <Shown text={price[at] ?? null} most={60} />]),
);

function Prices({ prices }: { readonly prices: readonly Price[] }) {
  if (prices.length === 0) return <p>The service sent no prices.</p>;
  return (
    <>
      <Table
        caption="Prices, exactly as the service wrote them"
        isNamed={false}
        columns={PRICE_COLUMNS}
        numbers={PRICE_FIELDS.filter(({ form }) => form === 'number').map(({ label }) => label)}
        rows={prices.slice(0, LISTED)}
      />
      {prices.length > LISTED && <p>{`and ${count(prices.length - LISTED)} more: see the JSON`}</p>}
    </>
  );
}

function Json({ row, at }: { readonly row: ProductRow; readonly at: number | null }) {
  const { vbid, body, removedAt } = row;
  const isWhole = body.length <= MOST_INDENTED;
  const text = isWhole ? indentedJson(body) : excerpt(body, 0, MOST_RAW);
  const rest = `The first ${count(MOST_RAW)} of ${plural(body.length, 'character')}. `;
  const elsewhere =
    at === null && removedAt === null ? (
      <a href={`/api/products/${encodeURIComponent(vbid)}`}>The whole as JSON</a>
    ) : (
      <>
        <code>catchword product</code> with <code>--at SEQ --json</code> prints a former version whole.
      </>
    );
  return (
    <details>
      <summary>{`The product as the service sent it, all fields, ${plural(body.length, 'character')}`}</summary>
      <p>
        {!isWhole && rest}
        {elsewhere}
      </p>
      <pre>{printableLines(text)}</pre>
    </details>
  );
}

interface StateProps {
  readonly row: ProductRow;
  /** The change as of which it is shown; null: now. */
  readonly at: number | null;
  readonly newest: ProductRow;
  readonly earlier: number | null;
  readonly later: number | null;
  readonly withdrawn: boolean;
}

function State({ row, at, newest, earlier, later, withdrawn }: StateProps) {
  const { vbid } = row;
  const removed = (
    <>
      The service no longer lists it; noticed <When at={row.changedAt} />. Its last known fields are shown.
    </>
  );
  const marked = 'The service still lists it, but marks it as not to be sold any more.';
  const [word, tone, meaning] =
    row.removedAt !== null
      ? ['removed', 'bad', removed]
      : withdrawn
        ? ['withdrawn', 'warn', marked]
        : ['living', 'good', 'The service lists it.'];
  return (
    <>
      {at !== null && (
        <p class="note warn">
          {`This is the product as it was right after change ${count(at)}`}
          {at === row.changedSeq ? '.' : `; it had last changed with change ${count(row.changedSeq)}.`}
          {row.changedSeq === newest.changedSeq ? ' It has not changed since.' : ' It has changed since.'}
        </p>
      )}
      <p>
        <strong class={`mark ${tone}`}>{word}</strong> {meaning}
      </p>
      <Facts
        known={{
          vbid: <Shown text={vbid} />,
          'First seen': <When at={row.firstSeenAt} />,
          'Last changed': (
            <>
              <When at={row.changedAt} />
              {`, change ${count(row.changedSeq)}`}
            </>
          ),
        }}
      />
      <nav class="pages" aria-label="Versions of this product">
        {earlier !== null && <a href={productPath(vbid, earlier)}>{`Earlier version (change ${count(earlier)})`}</a>}
        {later !== null && later !== newest.changedSeq && (
          <a href={productPath(vbid, later)}>{`Later version (change ${count(later)})`}</a>
        )}
        {at !== null && <a href={productPath(vbid)}>As it is now</a>}
      </nav>
    </>
  );
}

/** One product: its fields and its history; with `?at=`, its version right after a change. */
export const product: View = {
  path: '/products/:vbid',
  show: ({ store, clock }, { params: { vbid = '' }, query }) => {
    const searched = 'Check the vbid, or search for words of its title on the page Products (/products).';
    const newest = requireProduct(store, vbid, searched);
    const given = query.get('at');
    const hint = 'Choose a change in the history of this product.';
    const at = given === null ? null : seqOf(store, 'at', parseMoment('at', given, clock.now()), hint);
    const row = at === null ? newest : productAsOf(store, newest, at);
    const text = productText(row.body);
    const state: StateProps = {
      row,
      at,
      newest,
      earlier: store.changes.ofProduct(row.id, row.changedSeq, 1)[0]?.seq ?? null,
      later: store.changes.laterOf(row.id, row.changedSeq),
      withdrawn: text.withdrawn,
    };
    const sections: Section[] = [
      { id: 'state', content: <State {...state} /> },
      { id: 'fields', title: 'Fields', content: <Fields fields={text.fields} /> },
      { id: 'prices', title: 'Prices', content: <Prices prices={text.prices} /> },
      historySection(store, row, at, numberIn(query, 'before')),
      { id: 'json', title: 'JSON', content: <Json row={row} at={at} /> },
    ];
    return { title: short(row.title ?? row.vbid, 200), sections };
  },
};
