import { CHANGE_OPS } from '@catchword/catalog/run-types';
import type { Overview } from '../../report/overview-report.ts';
import { count, duration, moment } from '../../report/text.ts';
import type { RunDay } from '../../store/rows/recent-runs.ts';
import type { Store } from '../../store/store.ts';
import { Table } from './page-table.tsx';
import { capitalized } from './untrusted-text.tsx';

const DAY_MS = 86_400_000;
const SHOWN_MS = 30 * DAY_MS;
/** Runs that are read at most: for safety, one for each minute. */
const MOST_RUNS = 43_200;
/** Sinks with a chart of their own. */
const CHARTED_SINKS = 4;

/** A chart: its title, its form (`lengths` are milliseconds), and a figure for each day of each of its lines. */
type Line = (day: RunDay, at: number) => number | null;
type Chart = readonly [title: string, form: 'counts' | 'stack' | 'lengths', lines: Readonly<Record<string, Line>>];

function chartsOf(days: readonly RunDay[], { products, nowMs, ageMs, sinks }: Overview): readonly Chart[] {
  const later = (at: number, name: 'changes' | 'grown') => days.slice(at + 1).reduce((sum, day) => sum + day[name], 0);
  const kinds = CHANGE_OPS.map((op) => [capitalized(op), (day: RunDay) => day[op]] as const);
  const age: Line = ({ day, age: before }) => (nowMs < day + DAY_MS ? Math.max(before ?? 0, ageMs ?? 0) : before);
  const deliveries = sinks.listed.slice(0, CHARTED_SINKS).map(({ name, lagRecords }): Chart => {
    // The newest changes are those that a sink has not confirmed.
    const waits = ({ changes }: RunDay, at: number) =>
      Math.max(0, Math.min(changes, (lagRecords ?? 0) - later(at, 'changes')));
    const confirmed: Line = (day, at) => day.changes - waits(day, at);
    return [`Changes for ${name}`, 'stack', { [`${name} confirmed`]: confirmed, [`${name} waits for`]: waits }];
  });
  return [
    ['Products', 'counts', { Products: (_, at) => products - later(at, 'grown') }],
    ['Changes a day, without the first load', 'stack', Object.fromEntries(kinds)],
    ['Greatest age of the mirror', 'lengths', { Age: age }],
    ['Longest runs', 'lengths', { 'Full run': ({ full }) => full, 'Delta run': ({ delta }) => delta }],
    ...deliveries,
  ];
}

/** The last days on which a run ended, in charts. assets/runs.js draws them from the table, which has their figures. */
export function History({ store, overview }: { readonly store: Store; readonly overview: Overview }) {
  // The first load is left out, because next to it nothing else could be seen.
  const days = store.recentRuns.days(overview.nowMs - SHOWN_MS, store.recentRuns.firstComplete(), MOST_RUNS);
  const charts = chartsOf(days, overview);
  if (days.length === 0) return <p>Charts appear here when a run has ended after the first load.</p>;
  const columns = charts.flatMap(([, form, lines]) =>
    Object.entries(lines).map(([name, line]) => {
      const text = form === 'lengths' ? duration : count;
      const values = days.map(line);
      const cell = (at: number) => values[at] != null && <data value={values[at]}>{text(values[at])}</data>;
      return [name, cell] as const;
    }),
  );
  const day = (at: number) => <data value={days[at]?.day ?? 0}>{moment(days[at]?.day ?? 0).slice(0, 10)}</data>;
  return (
    <>
      <div class="charts">
        {/* A chart of one day shows nothing. */}
        {(days.length > 1 ? charts : []).map(([title, form, lines]) => (
          <figure class="chart" data-lines={Object.keys(lines).join('|')} data-form={form}>
            <figcaption>{title}</figcaption>
            <div data-drawn="" />
          </figure>
        ))}
      </div>
      <details class="figures" open>
        <summary>The figures of the charts</summary>
        <Table
          caption="Figures of the charts, a table"
          isCaptionHidden
          columns={{ 'Day (UTC)': day, ...Object.fromEntries(columns) }}
          numbers={columns.map(([name]) => name)}
          rows={[...days.keys()].reverse()}
        />
      </details>
    </>
  );
}
