import { holdOf } from '@catchword/catalog/reasons';
import type { Run } from '@catchword/catalog/run-types';
import { holdText } from '../../report/reason-text.ts';
import { heldFacts } from '../../report/run-text.ts';
import { count, plural } from '../../report/text.ts';
import type { HeldRow } from '../../store/rows/removals.ts';
import type { Store } from '../../store/store.ts';
import { ActionForm } from './action-form.tsx';
import { Facts } from './page-facts.tsx';
import { Table } from './page-table.tsx';
import { When } from './page-time.tsx';
import type { Section } from './page-view.ts';
import { ProductLink, Shown, short } from './untrusted-text.tsx';

/** Products on a page. */
const LISTED = 50;
/** Largest number that leaves out products which the source has withdrawn since. To tell more apart takes too long. */
const COUNTED_MOST = 5_000;

const COLUMNS = {
  Title: ({ vbid, title }: HeldRow) => <ProductLink vbid={vbid} title={title} />,
  Key: ({ vbid }: HeldRow) => <Shown text={vbid} most={120} />,
  Publisher: ({ publisher }: HeldRow) => <Shown text={publisher} most={120} />,
  'Withdrawn by the source': ({ withdrawn }: HeldRow) => (withdrawn === 1 ? 'yes' : 'no'),
};

/**
 * The removals that wait for a decision; empty if none do.
 * @param after lists products with ids above this one; null: from the first
 */
export function heldSection(store: Store, run: Run, after: number | null): Section {
  if (run.state !== 'held') return { id: 'held', live: true, content: null };
  const listed = store.removals.heldListed(run.id);
  const total = listed > COUNTED_MOST ? listed : store.removals.heldCount(run.id);
  const found = store.removals.heldAfter(run.id, after ?? 0, LISTED + 1);
  const rows = found.slice(0, LISTED);
  const missing = Math.max(run.missing, total);
  const hold = holdOf(run);
  const [asked] = store.actions.of(String(run.id), ['check'], 1);
  const content = (
    <>
      <p>
        {`This run did not find ${plural(missing, 'product')} at the source. That is unusual${hold === undefined ? '' : `: ${short(holdText(hold.why), 1_000)}`}. So nothing was removed.`}
        {missing > total &&
          ` ${count(missing - total)} of them were seen or removed since, so it would remove ${count(total)}.`}
      </p>
      <Facts known={heldFacts(store, run, total)} />
      <p>Look at some of them: does the service still sell them? If so, its list was wrong: reject.</p>
      {asked !== undefined && (
        <p>
          Asked at <When at={asked.at} />: <Shown text={asked.outcome ?? 'the answer is awaited'} most={2_000} />
        </p>
      )}
      <ActionForm
        action="check"
        target={run.id}
        label="Ask the service about 20 of them"
        explanation="Each is looked up by itself, which needs CATCHWORD_LOOKUP_PATH and takes about 23 requests. Nothing is changed."
      />
      <ActionForm
        action="approve"
        target={run.id}
        label="Approve the removals"
        explanation={`The ${plural(total, 'product')} are looked up once more where the source allows it; those that are gone are removed, and sinks get each as removed. You can undo this.`}
      />
      <ActionForm
        action="reject"
        target={run.id}
        label="Reject the removals"
        explanation="All of them stay in the mirror. If the next full load does not find them either, it asks again."
      />
      <Table
        caption={`${count(rows.length)} of ${plural(total, 'product')} that would be removed`}
        columns={COLUMNS}
        rows={rows}
      />
      <p class="pages">
        {after !== null && <a href={`/runs/${run.id}#held`}>First page</a>}
        {found.length > LISTED && <a href={`/runs/${run.id}?held=${rows.at(-1)?.id}#held`}>Next page</a>}
      </p>
    </>
  );
  return { id: 'held', title: 'Removals that wait for your decision', live: true, content };
}
