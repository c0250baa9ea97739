import type { ChangeOp } from '@catchword/catalog/run-types';
import { count, plural } from '../../report/text.ts';
import { CHANGE } from '../../shown/shown-change.ts';
import { CHANGE_FILTERS } from '../list-filters.ts';
import { askedFor, List } from './page-list.tsx';
import { ShownTable } from './page-shown.tsx';
import type { View } from './page-view.ts';

/** Changes on one page. */
const MOST = 50;
/** The rate is the number of changes recorded in this time, milliseconds. */
const RATE_MS = 60_000;

/** The change log; its newest page follows it. */
export const changes: View = {
  path: '/changes',
  show: ({ store, clock }, { query }) => {
    const asked = askedFor(query, CHANGE_FILTERS);
    const { op, field, ...range } = asked.only;
    const filter = { op: op?.split(',') as ChangeOp[] | undefined, field: field?.split(',') };
    const { changes: shown, next } = store.changes.list(MOST, { ...range, ...filter });
    const last = store.changes.lastSeq();
    const lately = last - store.changes.seqAt(clock.now() - RATE_MS);
    const head =
      last === 0 ? (
        <p>Nothing has changed yet. Every product that a run adds, changes or removes appears here.</p>
      ) : (
        <p>
          {`The newest change is ${count(last)}; ${plural(lately, 'change')} in the last minute. `}
          {asked.isNewest && 'New changes appear at the top as they are recorded.'}
        </p>
      );
    const none = next === null ? 'The log has no such change.' : 'None among the 5,000 that were searched.';
    const content = (
      <>
        {head}
        <List name="changes" path="/changes" filters={CHANGE_FILTERS} asked={asked} next={next}>
          {shown.length === 0 && last > 0 && <p>{none}</p>}
          {shown.length > 0 && (
            <ShownTable
              caption="Changes. A title leads to the product as it was right after the change."
              rows={CHANGE}
              all={shown}
              idOf={({ seq }) => `change-${seq}`}
            />
          )}
        </List>
      </>
    );
    return { title: 'Changes', sections: [{ id: 'changes', live: asked.isNewest, content }] };
  },
};
