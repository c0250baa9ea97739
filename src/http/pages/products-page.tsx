import { SUMMARY } from '@catchword/catalog/fields';
import type { ComponentChildren } from 'preact';
import type { NewestProduct, SearchHit } from '../../store/rows/product-rows.ts';
import { Table } from './page-table.tsx';
import { When } from './page-time.tsx';
import type { Address, View } from './page-view.ts';
import { ProductLink, Shown } from './untrusted-text.tsx';

/** Products that a list shows. */
const MOST = 50;

function SearchForm({ words, problem }: { readonly words: string; readonly problem: string | undefined }) {
  return (
    <form class="search" method="get" action="/products">
      <label for="q">Words to search for</label>
      <input
        id="q"
        name="q"
        type="search"
        value={words}
        aria-describedby="q-help"
        aria-invalid={problem === undefined ? undefined : true}
        aria-errormessage={problem && 'q-error'}
      />
      <button type="submit">Search</button>
      {problem !== undefined && (
        <p id="q-error" class="bad" role="alert">
          {problem}
        </p>
      )}
      <p id="q-help" class="soft">
        Finds products that contain every word in their title, subtitle, contributors, publisher or an identifier: an
        ISBN, with or without dashes, or a vbid. Capitals and accents make no difference. <code>hist*</code> finds every
        word that begins with “hist”. Removed products are not found; open them by their vbid.
      </p>
    </form>
  );
}

/** The columns that all lists have: the first field, as a link, `vbid`, and the others. */
const [FIRST, ...OTHERS] = SUMMARY;
const COLUMNS: Readonly<Record<string, (hit: SearchHit) => ComponentChildren>> = {
  [String(FIRST?.label)]: ({ vbid, title }) => <ProductLink vbid={vbid} title={title} />,
  vbid: ({ vbid }) => <Shown text={vbid} most={60} />,
  ...Object.fromEntries(
    OTHERS.map(({ label, name }) => [
      label,
      (hit: SearchHit) => <Shown text={hit[name as keyof SearchHit] as string | null} most={60} />,
    ]),
  ),
};

function Hits({ hits, words }: { readonly hits: readonly SearchHit[]; readonly words: string }) {
  if (hits.length === 0) {
    return (
      <p>
        No product contains all words of “
        <Shown text={words} />
        ”. Check the spelling, or search for fewer words or for the beginning of one, such as <code>hist*</code>.
      </p>
    );
  }
  return (
    <>
      {hits.length > MOST && (
        <p>{`More than ${MOST} products match; these ${MOST} match best. Add a word to narrow the search.`}</p>
      )}
      <Table caption="Products found, the best match first" columns={COLUMNS} rows={hits.slice(0, MOST)} />
    </>
  );
}

function Newest({ products }: { readonly products: readonly NewestProduct[] }) {
  if (products.length === 0)
    return <p>The mirror has no products yet. They appear here while the first run reads them.</p>;
  return (
    <Table
      caption={`The ${MOST} products that changed last`}
      columns={{
        ...COLUMNS,
        Changed: ({ changedAt, removedAt }) => (
          <>
            <When at={changedAt} />
            {removedAt !== null && <span class="warn"> removed</span>}
          </>
        ),
      }}
      rows={products}
    />
  );
}

const wordsOf = ({ query }: Address): string => (query.get('q') ?? '').trim();

/** The search, and its results at `?q=`; without words, the products that changed last. */
export const products: View = {
  path: '/products',
  find: async ({ steps }, address) => {
    const words = wordsOf(address);
    return words !== '' && <Hits hits={await steps.search(words, MOST + 1)} words={words} />;
  },
  show: ({ store }, { found, problem, ...address }) => {
    const words = wordsOf(address);
    const search = { id: 'search', content: <SearchForm words={words} problem={problem} /> };
    if (words === '') {
      const newest = <Newest products={store.products.newest(MOST)} />;
      return { title: 'Products', sections: [search, { id: 'newest', title: 'Changed last', content: newest }] };
    }
    const results = found ?? <p>Nothing was searched for.</p>;
    return { title: 'Products', sections: [search, { id: 'results', title: 'Found', content: results }] };
  },
};
