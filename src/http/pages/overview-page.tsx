import type { ComponentChildren } from 'preact';
import { type Overview, overviewOf } from '../../report/overview-report.ts';
import { openText } from '../../report/run-text.ts';
import { missedText } from '../../report/status-text.ts';
import { count, localIso, plural, size, time } from '../../report/text.ts';
import { decisionsSection } from './actions-page.tsx';
import { Attention } from './overview-attention.tsx';
import { Table } from './page-table.tsx';
import type { PageParts, View } from './page-view.ts';
import { clipped, roughly } from './phrases.ts';
import { StartForms } from './runs-page.tsx';
import { lagText, NoRelay, SinkMark, sinkPath } from './sinks-page.tsx';
import { Shown } from './untrusted-text.tsx';

function Moment({ at, nowMs }: { readonly at: number; readonly nowMs: number }) {
  const words = at > nowMs ? `in ${roughly(at - nowMs)}` : `${roughly(nowMs - at)} ago`;
  return (
    <time dateTime={new Date(at).toISOString()} title={time(at)}>
      {words}
    </time>
  );
}

/** A figure of the overview, by its name. */
function Figure({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const FRESHNESS = {
  fresh: ['good', 'Up to date'],
  empty: ['warn', 'Not complete yet'],
  failing: ['warn', 'Usable, but the last run failed'],
  stale: ['bad', 'Too old to rely on'],
  clock: ['bad', 'Age unknown: the clock of this machine was wrong'],
} as const;

function changesText(changes: Overview['changes']): string {
  const found = Object.entries(changes).flatMap(([op, number]) => (number === 0 ? [] : [`${count(number)} ${op}`]));
  return found.join(', ') || 'none';
}

/** ` (02:00 in Europe/Berlin)` */
function localText(ms: number, timezone: string): string {
  return ` (${localIso(ms, timezone).slice(11, 16)} in ${timezone})`;
}

function Headline({ overview, nowMs }: { readonly overview: Overview; readonly nowMs: number }) {
  const { freshness, asOf, products, last, openRun, plans, daemon, missed, changes, mirrorBytes, freeBytes } = overview;
  const [state, words] = FRESHNESS[freshness];
  const { nextFull, nextDelta, timezone } = plans;
  return (
    <dl class="figures">
      <Figure name="Mirror">
        <strong class={state}>{words}</strong>
        {asOf !== null && freshness !== 'clock' && (
          <>
            , as of <Moment at={asOf} nowMs={nowMs} />
          </>
        )}
      </Figure>
      <Figure name="Products">{count(products)}</Figure>
      <Figure name="Last run">{last === null ? 'none yet' : <LastRun run={last} nowMs={nowMs} />}</Figure>
      {openRun !== null && (
        <Figure name="Proof">
          <a href={`/runs/${openRun.id}`} class="warn">
            {clipped(openText(openRun))}
          </a>
        </Figure>
      )}
      <Figure name="Next runs">
        {!daemon && 'none: no daemon is running'}
        {daemon && nextFull === null && nextDelta === null && 'none is scheduled'}
        {nextDelta !== null && (
          <>
            changes <Moment at={nextDelta} nowMs={nowMs} />
            {localText(nextDelta, timezone)}
          </>
        )}
        {nextDelta !== null && nextFull !== null && ', '}
        {nextFull !== null && (
          <>
            everything <Moment at={nextFull} nowMs={nowMs} />
            {localText(nextFull, timezone)}
          </>
        )}
      </Figure>
      {missed.length > 0 && (
        <Figure name="Missed runs">
          <span class="warn">
            {missed.map((one) => missedText(one.kind, one.missed, one.reason, timezone)).join('; ')}
          </span>
        </Figure>
      )}
      <Figure name="Changes in the last 24 hours">{changesText(changes)}</Figure>
      <Figure name="Size">{`${size(mirrorBytes)}, ${size(freeBytes)} of the disk free`}</Figure>
    </dl>
  );
}

/** What a run has proven, for a person who does not know the word. */
const PROOF = {
  sealed: 'sealed: it saw every product',
  open: 'open: it could not prove that it saw every product',
} as const;

function LastRun({ run, nowMs }: { readonly run: NonNullable<Overview['last']>; readonly nowMs: number }) {
  const { id, kind, state, proof, error, finishedAt } = run;
  const mark = state === 'failed' ? 'bad' : state === 'held' || proof === 'open' ? 'warn' : 'good';
  const result = state === 'held' ? 'waits for a decision' : state;
  return (
    <>
      <a href={`/runs/${id}`}>{`${kind === 'full' ? 'Full' : 'Delta'} run ${id}`}</a>{' '}
      <span class={mark}>{proof === null ? result : `${result}, ${PROOF[proof]}`}</span>
      {finishedAt !== null && (
        <>
          , <Moment at={finishedAt} nowMs={nowMs} />
        </>
      )}
      {error !== null && `: ${clipped(error)}`}
    </>
  );
}

function ActiveRun({ overview: { active, progress, working, daemon } }: { readonly overview: Overview }) {
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

/** What happens now, while the mirror has never been complete. */
function FirstTime({
  overview: { active, daemon, plans, pausedUntil },
  nowMs,
}: {
  readonly overview: Overview;
  readonly nowMs: number;
}) {
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
  const next = pausedUntil ?? plans.nextFull;
  return (
    <p>
      The mirror is empty. The first full load reads the whole catalog
      {next !== null && (
        <>
          ; it starts <Moment at={next} nowMs={nowMs} />
        </>
      )}
      . To start it now, use the button below.
    </p>
  );
}

function Sinks({
  store,
  sinks,
  nowMs,
}: Pick<PageParts, 'store'> & Pick<Overview, 'sinks'> & { readonly nowMs: number }) {
  if (sinks.count === 0) {
    return <p>No store is fed. Set CATCHWORD_SINK_&lt;NAME&gt; to feed one, such as a database of the shop.</p>;
  }
  const more = sinks.count - sinks.listed.length;
  return (
    <>
      <NoRelay store={store} nowMs={nowMs} />
      <Table
        label="Sinks, a table"
        caption="Stores that receive the changes of the mirror"
        heads={['Sink', 'State', 'Behind', 'Last error']}
      >
        {sinks.listed.map((sink) => (
          <tr>
            <th scope="row">
              <a href={sinkPath(sink.name)}>{sink.name}</a>
            </th>
            <td>
              <SinkMark state={sink.state} />
            </td>
            <td>{lagText(sink)}</td>
            <td>
              <Shown text={sink.error} most={200} />
            </td>
          </tr>
        ))}
      </Table>
      {more > 0 && (
        <p>
          <a href="/sinks">{`${plural(more, 'more sink')}`}</a>
        </p>
      )}
    </>
  );
}

/** How fresh the mirror is, and what needs a decision. */
export const overview: View = {
  path: '/',
  show: ({ store, state, plans }) => {
    const now = state();
    const { nowMs } = now;
    const facts = overviewOf(store, now, plans(store, nowMs));
    const isNew = facts.freshness === 'empty';
    return {
      title: 'Overview',
      sections: [
        { id: 'attention', title: 'To decide', live: true, content: <Attention overview={facts} /> },
        {
          id: 'mirror',
          title: 'The mirror',
          live: true,
          content: (
            <>
              {isNew && <FirstTime overview={facts} nowMs={nowMs} />}
              <Headline overview={facts} nowMs={nowMs} />
            </>
          ),
        },
        { id: 'run', title: 'The run under way', live: true, content: <ActiveRun overview={facts} /> },
        { id: 'sinks', title: 'Sinks', live: true, content: <Sinks store={store} sinks={facts.sinks} nowMs={nowMs} /> },
        { id: 'start', title: 'Start a load', content: <StartForms /> },
        decisionsSection(store, nowMs),
      ],
    };
  },
};
