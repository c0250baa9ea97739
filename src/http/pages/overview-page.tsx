import { type Overview, overviewOf } from '../../report/overview-report.ts';
import { openText } from '../../report/run-text.ts';
import { clockIn, count, plural, roughly, size, time } from '../../report/text.ts';
import { seenChannels } from '../../shown/shown-channel.ts';
import { rowsOf } from '../../shown/shown-row.ts';
import { changesText } from '../../shown/shown-run.ts';
import { NO_SINKS, SINK } from '../../shown/shown-sink.ts';
import { missedTexts } from '../../shown/status-text.ts';
import { decisionsSection } from './actions-page.tsx';
import { Attention, Trouble } from './overview-attention.tsx';
import { History } from './overview-history.tsx';
import { Facts } from './page-facts.tsx';
import { ShownTable } from './page-shown.tsx';
import type { PageParts, View } from './page-view.ts';
import { channelSections } from './problems-page.tsx';
import { RunMark, StartForms } from './runs-page.tsx';
import { NoRelay } from './sinks-page.tsx';
import { clipped } from './untrusted-text.tsx';

interface OverviewProps {
  readonly overview: Overview;
}

function Moment({ at, nowMs }: { readonly at: number; readonly nowMs: number }) {
  const words = at > nowMs ? `in ${roughly(at - nowMs)}` : `${roughly(nowMs - at)} ago`;
  return (
    <time dateTime={new Date(at).toISOString()} title={time(at)}>
      {words}
    </time>
  );
}

const FRESHNESS = {
  fresh: ['good', 'Up to date'],
  empty: ['warn', 'Not complete yet'],
  failing: ['warn', 'Usable, but the last run failed'],
  stale: ['bad', 'Too old to rely on'],
  clock: ['bad', 'Age unknown: the clock of this machine was wrong'],
} as const;

/** `changes in 5 minutes (02:00 in Europe/Berlin), everything in 3 hours (…)`. */
function NextRuns({ overview: { plans, daemon, nowMs } }: OverviewProps) {
  if (!daemon) return 'none: no daemon is running';
  const starts = Object.entries({ changes: plans.nextDelta, everything: plans.nextFull });
  const planned = starts.flatMap(([what, at]) => (at === null ? [] : [{ what, at }]));
  if (planned.length === 0) return 'none is scheduled';
  return planned.map(({ what, at }, place) => (
    <>
      {`${place === 0 ? '' : ', '}${what} `}
      <Moment at={at} nowMs={nowMs} />
      {clockIn(at, plans.timezone)}
    </>
  ));
}

function Headline({ overview }: OverviewProps) {
  const { nowMs, freshness, asOf, products, last, openRun, plans, missed, changes, mirrorBytes, disk } = overview;
  const [state, words] = FRESHNESS[freshness];
  const missedRuns = missedTexts(missed, plans.timezone);
  return (
    <Facts
      areBoxed
      known={{
        Mirror: (
          <>
            <strong class={state}>{words}</strong>
            {asOf !== null && freshness !== 'clock' && ', as of '}
            {asOf !== null && freshness !== 'clock' && <Moment at={asOf} nowMs={nowMs} />}
          </>
        ),
        Products: count(products),
        'Last run': last === null ? 'none yet' : <LastRun run={last} nowMs={nowMs} />,
        Proof: openRun && (
          <a href={`/runs/${openRun.id}`} class="warn">
            {clipped(openText(openRun))}
          </a>
        ),
        'Next runs': <NextRuns overview={overview} />,
        'Missed runs': missedRuns.length > 0 && <span class="warn">{missedRuns.join('; ')}</span>,
        'Changes in the last 24 hours': changesText(changes),
        Size: `${size(mirrorBytes)}, ${size(disk.free)} of the disk free`,
      }}
    />
  );
}

function LastRun({ run, nowMs }: { readonly run: NonNullable<Overview['last']>; readonly nowMs: number }) {
  const { id, kind, proof, error, finishedAt } = run;
  return (
    <>
      <a href={`/runs/${id}`}>{`${kind === 'full' ? 'Full' : 'Delta'} run ${id}`}</a> <RunMark run={run} of="state" />
      {proof !== null && <RunMark run={run} of="proof" />}
      {finishedAt !== null && ', '}
      {finishedAt !== null && <Moment at={finishedAt} nowMs={nowMs} />}
      {error !== null && `: ${clipped(error)}`}
    </>
  );
}

function ActiveRun({ overview: { active, progress, working, daemon } }: OverviewProps) {
  if (active === null) return <p>No run is under way.</p>;
  const { id, kind, requests, settlesAt, missing } = active;
  const unseen = missing === 0 ? '' : `; it did not see ${plural(missing, 'product')} so far`;
  const what = kind === 'full' ? 'reads the whole catalog' : 'reads what has changed';
  return (
    <>
      <p>
        <a href={`/runs/${id}`}>{`Run ${id}`}</a>
        {settlesAt !== null
          ? ` has read everything, and waits for changes that the service may show late${unseen}.`
          : progress === null
            ? ` ${what}: it waits for the first page of the service.`
            : ` ${what}: ${count(progress.items)} of about ${plural(progress.total, 'product')}, ${plural(requests, 'request')} so far.`}
      </p>
      {progress !== null && (
        <progress max={Math.max(1, progress.total)} value={progress.items} aria-label={`Progress of run ${id}`} />
      )}
      {!working && (
        <p class="warn">
          {daemon
            ? 'It was interrupted; the daemon resumes it soon.'
            : 'It was interrupted. Start the daemon (npx catchword daemon): it resumes the run where it was.'}
        </p>
      )}
    </>
  );
}

/** Says what happens now, while the mirror has never been complete. */
function FirstTime({ overview: { nowMs, active, daemon, plans, pause } }: OverviewProps) {
  if (active !== null) {
    return (
      <p>
        The first full load is under way. Products can be searched as soon as they are read; the mirror is complete when
        the load ends.
      </p>
    );
  }
  if (!daemon) {
    return <p>The mirror is empty, and no daemon is running that would fill it. Start it with: npx catchword daemon</p>;
  }
  const next = pause?.until ?? plans.nextFull;
  return (
    <p>
      The mirror is empty. The first full load reads the whole catalog
      {next !== null && '; it starts '}
      {next !== null && <Moment at={next} nowMs={nowMs} />}. To start it now, <a href="#start">start a full load</a>.
    </p>
  );
}

/** What the overview shows of a sink: nothing that reads many rows. */
const OF_OVERVIEW = rowsOf(SINK, 'name', 'state', 'lag_records', 'held', 'error');

function Sinks({ store, overview: { sinks, nowMs } }: OverviewProps & Pick<PageParts, 'store'>) {
  if (sinks.count === 0) return <p>{NO_SINKS}</p>;
  const more = sinks.count - sinks.listed.length;
  return (
    <>
      <NoRelay store={store} nowMs={nowMs} />
      <ShownTable caption="Stores that receive the changes of the mirror" rows={OF_OVERVIEW} all={sinks.listed} />
      {more > 0 && (
        <p>
          <a href="/sinks">{`${plural(more, 'more sink')}`}</a>
        </p>
      )}
    </>
  );
}

/** Shows how fresh the mirror is, and what needs a decision. */
export const overview: View = {
  path: '/',
  show: ({ store, state, plans, channels: configured }) => {
    const now = state();
    const { nowMs } = now;
    const facts = overviewOf(store, now, plans(store, nowMs));
    const channels = seenChannels(store, configured);
    const isNew = facts.freshness === 'empty';
    return {
      title: 'Overview',
      draws: true,
      sections: [
        { id: 'attention', title: 'To decide', live: true, content: <Attention overview={facts} /> },
        { id: 'trouble', title: 'To know', live: true, content: <Trouble overview={facts} channels={channels} /> },
        {
          id: 'mirror',
          title: 'The mirror',
          live: true,
          content: (
            <>
              {isNew && <FirstTime overview={facts} />}
              <Headline overview={facts} />
            </>
          ),
        },
        { id: 'run', title: 'The run under way', live: true, content: <ActiveRun overview={facts} /> },
        { id: 'sinks', title: 'Sinks', live: true, content: <Sinks store={store} overview={facts} /> },
        ...channelSections({ store, channels: configured }),
        { id: 'history', title: 'The last 30 days', content: <History store={store} overview={facts} /> },
        { id: 'start', title: 'Start a load', content: <StartForms /> },
        decisionsSection(store, nowMs),
      ],
    };
  },
};
