import type { Run } from '@catchword/catalog/run-types';
import { clockIn } from '../../report/text.ts';
import { rowsOf } from '../../shown/shown-row.ts';
import { RUN, runRows } from '../../shown/shown-run.ts';
import { RUN_FILTERS } from '../list-filters.ts';
import { ActionForm } from './action-form.tsx';
import { decisionsSection } from './actions-page.tsx';
import { askedFor, List, pageOf } from './page-list.tsx';
import { partsOf, ShownTable } from './page-shown.tsx';
import { When } from './page-time.tsx';
import type { PageParts, View } from './page-view.ts';

/** Runs of the schedule that are listed. */
const SCHEDULED = 10;
/** Runs on a page. */
const LISTED = 50;

/** The state or the proof of a run. */
export function Mark({ word, tone }: { readonly word: string; readonly tone: string }) {
  return <span class={`mark ${tone}`}>{word}</span>;
}

/** What a run is, in a mark: the row of its state, or of its proof. */
export function RunMark({ run, of }: { readonly run: Run; readonly of: 'state' | 'proof' }) {
  return <>{rowsOf(RUN, of).map((row) => partsOf(row, run))}</>;
}

export function StartForms() {
  return (
    <>
      <p>
        Loads start by themselves at the times in the settings. A load that you start here begins when the daemon is
        free: one runs at a time.
      </p>
      <ActionForm
        action="start"
        target="delta"
        label="Start a delta load"
        explanation="A delta load asks the service for what has changed since the last load. It takes few requests."
      />
      <ActionForm
        action="start"
        target="full"
        label="Start a full load"
        explanation="A full load reads the whole catalog, and finds out which products are gone. It takes about 1,050 requests for a million products."
      />
    </>
  );
}

/** When the schedule starts the next runs. */
function Schedule({
  store,
  upcoming,
  plans,
  nowMs,
}: Pick<PageParts, 'store' | 'upcoming' | 'plans'> & { nowMs: number }) {
  if (store.daemonLease.holder(nowMs) === null) return <p>No daemon is running, so no run starts by itself.</p>;
  const found = upcoming(nowMs, SCHEDULED);
  if (found.length === 0) return <p>No run is scheduled: CATCHWORD_FULL_CRON and CATCHWORD_DELTA_CRON are off.</p>;
  const { timezone } = plans(store, nowMs);
  return (
    <ol>
      {found.map(({ kind, at }) => (
        <li>
          <When at={at} />
          {`${clockIn(at, timezone)}: ${kind}`}
        </li>
      ))}
    </ol>
  );
}

/** The runs, the newest first. */
export const runs: View = {
  path: '/runs',
  show: ({ store, clock, ...parts }, { query }) => {
    const nowMs = clock.now();
    const asked = askedFor(query, RUN_FILTERS);
    const { shown, next } = pageOf(store.runs.list(LISTED + 1, asked.only), LISTED, ({ id }) => id);
    const isWhole = asked.isNewest && Object.keys(asked.given).length === 0;
    const waiting = isWhole ? store.runs.held() : [];
    const others = shown.filter(({ id }) => !waiting.some((run) => run.id === id));
    const list = (
      <List name="runs" path="/runs" filters={RUN_FILTERS} asked={asked} next={next}>
        {shown.length === 0 ? (
          <p>{isWhole ? 'No run yet. Start a full load to fill the mirror.' : 'No such runs exist.'}</p>
        ) : (
          <ShownTable
            caption="Runs that wait for a decision, then the newest first. A sealed run has proven that it missed nothing."
            rows={runRows(nowMs)}
            all={[...waiting, ...others]}
          />
        )}
        <p>
          <a href="/rejected">Items that no run could use</a>
        </p>
      </List>
    );
    return {
      title: 'Runs',
      sections: [
        { id: 'runs', live: asked.isNewest, content: list },
        { id: 'start', title: 'Start a load', content: <StartForms /> },
        {
          id: 'schedule',
          title: 'The next runs by schedule',
          live: asked.isNewest,
          content: <Schedule store={store} {...parts} nowMs={nowMs} />,
        },
        // What becomes of a start is shown where it was asked for.
        ...(asked.isNewest ? [decisionsSection(store, nowMs)] : []),
      ],
    };
  },
};
