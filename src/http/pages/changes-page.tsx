import { count, plural } from '../../report/text.ts';
import { CHANGE } from '../../shown/shown-change.ts';
import { ShownTable } from './page-shown.tsx';
import { numberIn, type View } from './page-view.ts';

/** Changes on one page. */
const MOST = 50;
/** The rate is the number of changes recorded in this time, milliseconds. */
const RATE_MS = 60_000;

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
          <ShownTable
            caption="Changes, the newest first. A title leads to the product as it was right after the change."
            rows={CHANGE}
            all={shown}
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
