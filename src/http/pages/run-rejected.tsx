import type { Run } from '@catchword/catalog/run-types';
import { count, plural } from '../../report/text.ts';
import { REJECTED } from '../../shown/shown-rejected.ts';
import { labelsOf } from '../../shown/shown-row.ts';
import type { RejectedRow } from '../../store/rows/runs.ts';
import type { Store } from '../../store/store.ts';
import { REJECTED_FILTERS } from '../list-filters.ts';
import { Body, OPENED } from './page-body.tsx';
import { askedFor, List, pageOf } from './page-list.tsx';
import { ShownTable } from './page-shown.tsx';
import type { Section, View } from './page-view.ts';

/** Items on a page. */
const LISTED = 50;
const bodyCell = (of: RejectedRow) => <Body {...of} rest="The SQL view rejected_items has all." />;

const NAMES = labelsOf(REJECTED);
/** A run's own page does not name the run. */
const OF_RUN = REJECTED.filter(({ key }) => key !== 'run');

/** Items of the source that no run could use, of all runs. */
export const rejected: View = {
  path: '/rejected',
  show: ({ store }, { query }) => {
    const asked = askedFor(query, REJECTED_FILTERS);
    const found = store.runs.rejected(LISTED + 1, asked.only, OPENED);
    const { shown, next } = pageOf(found, LISTED, ({ id }) => id);
    const content = (
      <List name="rejected items" path="/rejected" filters={REJECTED_FILTERS} asked={asked} next={next}>
        {shown.length === 0 ? (
          <p>No such item. Items of the source that are not valid products are listed here for 30 days.</p>
        ) : (
          <ShownTable
            caption="Items that are not valid products, or that show a product in part"
            rows={REJECTED}
            all={shown}
            cells={{ [NAMES.body]: bodyCell }}
          />
        )}
      </List>
    );
    return { title: 'Rejected items', sections: [{ id: 'rejected', live: asked.isNewest, content }] };
  },
};

/** The first items of the source that the run could not use; empty if there are none. */
export function rejectedSection(store: Store, run: Run): Section {
  const section = { id: 'rejected', live: true } as const;
  const unused = run.rejected + store.runs.inPart(run.id).items;
  if (unused === 0) return { ...section, content: null };
  const rows = store.runs.rejected(LISTED, { run: run.id, after: 0 }, OPENED);
  const content =
    rows.length === 0 ? (
      <p>{`${plural(unused, 'item')}. They are listed for 30 days.`}</p>
    ) : (
      <>
        <p>
          These items of the source are not valid products, or a delta shows them in part. The rest of each page was
          applied; a product that was in the mirror before stays as it was. The first 1,000 are kept.
        </p>
        <ShownTable
          caption={`${count(rows.length)} of ${plural(unused, 'item')}`}
          rows={OF_RUN}
          all={rows}
          cells={{ [NAMES.body]: bodyCell }}
        />
        <p class="pages">
          <a href={`/rejected?run=${run.id}`}>All of them, the newest first</a>
        </p>
      </>
    );
  return { ...section, title: 'Rejected items', content };
}
