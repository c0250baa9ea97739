import { count, plural } from '../../report/text.ts';
import type { ListedChange } from '../../store/rows/changes.ts';
import { Table } from './page-table.tsx';
import { When } from './page-time.tsx';
import { numberIn, type View } from './page-view.ts';
import { ProductLink, Shown } from './untrusted-text.tsx';

/** Changes on one page. */
const MOST = 50;
/** Names of changed fields that are shown of one change. */
const MOST_FIELDS = 12;
/** The rate is the number of changes recorded in this time, milliseconds. */
const RATE_MS = 60_000;

function FieldNames({ op, fields }: Pick<ListedChange, 'op' | 'fields'>) {
  if (fields === null) return <>many or long ones: see the product</>;
  if (fields.length === 0) return <>{op === 'updated' || op === 'restored' ? 'none' : 'the whole product'}</>;
  const rest = fields.length - MOST_FIELDS;
  return (
    <>
      {fields.slice(0, MOST_FIELDS).map((field, at) => (
        <>
          {at > 0 && ', '}
          <Shown text={field} most={60} />
        </>
      ))}
      {rest > 0 && ` and ${count(rest)} more`}
    </>
  );
}

const COLUMNS = {
  Change: ({ seq }: ListedChange) => count(seq),
  What: ({ op }: ListedChange) => op,
  Product: ({ vbid, title, seq }: ListedChange) => <ProductLink vbid={vbid} title={title} at={seq} />,
  Fields: ({ op, fields }: ListedChange) => <FieldNames op={op} fields={fields} />,
  When: ({ at }: ListedChange) => <When at={at} />,
  Run: ({ runId }: ListedChange) => <a href={`/runs/${runId}`}>{`run\u00a0${runId}`}</a>,
};

/** The change log, newest first; the first page follows it. */
export const changes: View = {
  path: '/changes',
  show: ({ store, clock }, { query }) => {
    const given = numberIn(query, 'before');
    const found = store.changes.before(given ?? Number.MAX_SAFE_INTEGER, MOST + 1);
    const shown = found.slice(0, MOST);
    const last = store.changes.lastSeq();
    const lately = last - store.changes.seqAt(clock.now() - RATE_MS);
    const head =
      last === 0 ? (
        <p>Nothing has changed yet. Every product that a run adds, changes or removes appears here.</p>
      ) : (
        <p>
          {`The newest change is ${count(last)}; ${plural(lately, 'change')} in the last minute. `}
          {given === null && 'New changes appear at the top as they are recorded.'}
        </p>
      );
    const paging = (
      <nav class="pages" aria-label="Pages of the changes">
        {given !== null && <a href="/changes">Newest changes</a>}
        {found.length > MOST && <a href={`/changes?before=${shown.at(-1)?.seq}`}>Older changes</a>}
      </nav>
    );
    const content = (
      <>
        {head}
        {shown.length > 0 && (
          <Table
            caption="Changes, the newest first. A title leads to the product as it was right after the change."
            columns={COLUMNS}
            rows={shown}
            idOf={({ seq }) => `change-${seq}`}
          />
        )}
        {shown.length === 0 && last > 0 && <p>The log has no older changes.</p>}
        {paging}
      </>
    );
    return { title: 'Changes', sections: [{ id: 'changes', live: given === null, content }] };
  },
};
