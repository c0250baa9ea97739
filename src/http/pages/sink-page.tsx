import { requireSink } from '../../operate/decisions/sink-actions.ts';
import { holdNumber, type SinkSeen, seenSink } from '../../report/sink-report.ts';
import { count } from '../../report/text.ts';
import { productPath } from '../../shown/shown-change.ts';
import { PARKED } from '../../shown/shown-parked.ts';
import { jsonOf, labelsOf, rowsOf } from '../../shown/shown-row.ts';
import { meaningOf, SINK, sinkPath } from '../../shown/shown-sink.ts';
import type { SinkRow } from '../../store/rows/sink-rows.ts';
import type { Store } from '../../store/store.ts';
import { PARKED_FILTERS } from '../list-filters.ts';
import { ActionForm, type ActionFormProps } from './action-form.tsx';
import { decisionsSection } from './actions-page.tsx';
import { Body, OPENED } from './page-body.tsx';
import { addressOf, askedFor, FilterForm, pageOf } from './page-list.tsx';
import { ShownFacts, ShownTable } from './page-shown.tsx';
import type { Section, View } from './page-view.ts';
import { curvesSection } from './sink-curves.tsx';
import { findPreview, previewSection } from './sink-preview-section.tsx';
import { NoRelay } from './sinks-page.tsx';

/** Parked events on one page. */
const MOST = 50;

function Approvals({ row }: { readonly row: SinkRow }) {
  const all =
    'Its store gets what its changed view changes, or the changes of the run, or loses what its fill did not deliver; then it gets what follows.';
  const newest =
    'Once the source is right again: sends each product as it is now, and only where its store has something else.';
  // When the form arrives, something else may hold the sink, and this person has not been asked about that.
  const decides = { target: row.name, argument: holdNumber(row) };
  return (
    <>
      <ActionForm action="release" {...decides} label="Approve" explanation={all} />
      {row.held?.why === 'run' && (
        <ActionForm action="release-newest" {...decides} label="Send only what differs now" explanation={newest} />
      )}
    </>
  );
}

/** Offers the decisions of this state. The section changes only with the state, so that an open form stays. */
function Decisions({ row, sink }: { readonly row: SinkRow; readonly sink: SinkSeen }) {
  const { name, stoppedAt } = row;
  const { state } = sink;
  const { parked, verified, incomparable } = jsonOf(rowsOf(SINK, 'parked', 'verified', 'incomparable'), sink);
  const isRunning = row.state === 'running';
  const isComparable = isRunning && incomparable === null;
  if (row.state === 'held') return <Approvals row={row} />;
  const forms: (false | Omit<ActionFormProps, 'target'>)[] = [
    isRunning && {
      action: 'pause',
      label: 'Pause',
      explanation: 'Stops delivering to this sink. The change log keeps what it needs until it is resumed.',
    },
    (!isRunning || state === 'retrying') && {
      action: 'resume',
      label: 'Resume',
      explanation: isRunning
        ? 'Retries now, not after the pause.'
        : 'Continues after the last confirmed change. Parked events stay parked.',
    },
    isComparable && {
      action: 'verify-deep',
      label: 'Compare with its source',
      explanation: 'Compares every product of the store with what it should have. Nothing is delivered meanwhile.',
    },
    isComparable &&
      verified?.allows === 'repair' &&
      verified.remaining > 0 && {
        action: 'repair-deep',
        label: 'Repair the store',
        explanation: 'Compares again, and brings each product that differs to what it should be.',
      },
    (parked > 0 || state === 'stopped') && {
      action: 'retry',
      label: 'Retry parked events',
      explanation:
        'Redelivers all parked events, in order, and resumes the sink. Fix what the sink rejected them for first.',
    },
    stoppedAt !== null && {
      action: 'skip',
      argument: stoppedAt,
      label: `Skip event ${count(stoppedAt)}, at which it stopped`,
      explanation: 'This event is never delivered to this sink. The sink resumes with the next one.',
    },
    (parked > 0 || stoppedAt !== null) && {
      action: 'skip-all',
      label: 'Skip all rejected events',
      explanation:
        'No event that the sink rejected is ever delivered to it. The later events of the same products, which waited, are delivered.',
    },
  ];
  return (
    <>
      {incomparable !== null && <p>Its store cannot be compared with its source: {incomparable}.</p>}
      {forms.map((form) => form && <ActionForm target={name} {...form} />)}
    </>
  );
}

function Replay({ name }: { readonly name: string }) {
  return (
    <>
      <ActionForm
        action="replay"
        target={name}
        label="Replay everything"
        explanation="Delivers every product as it is now, removals included, and then what follows. It also takes over a store that another mirror has fed. A paused or stopped sink gets it after it is resumed."
      />
      <details class="action">
        <summary>Replay from a change…</summary>
        <form method="post" action="/actions" class="action">
          <p>Redelivers every change from this one on. The receiver must accept events that it already has.</p>
          <input type="hidden" name="action" value="replay" />
          <input type="hidden" name="target" value={name} />
          <label for="from">Number of the first change</label>{' '}
          <input id="from" type="number" name="argument" min={1} step={1} required />{' '}
          <button type="submit">Replay from there</button>
        </form>
      </details>
    </>
  );
}

const { body: SENT } = labelsOf(PARKED);

function parkedSection(store: Store, { id, name }: SinkRow, query: URLSearchParams): Section {
  const { only, given } = askedFor(query, PARKED_FILTERS);
  const { after = 0 } = only;
  const { shown: events, next } = pageOf(
    store.sinks.waiting(id, after, MOST + 1, only, OPENED),
    MOST,
    ({ seq }) => seq,
  );
  const isWhole = after === 0 && Object.keys(given).length === 0;
  const content = (
    <>
      <p>
        An event that the store rejects for good is parked. Later events of the same product wait behind it, so that
        their order is kept; all other events continue.
      </p>
      {(!isWhole || events.length > 0) && (
        <FilterForm path={`${sinkPath(name)}#parked`} filters={PARKED_FILTERS} given={given} />
      )}
      {events.length === 0 ? (
        <p>{isWhole ? 'No event is parked.' : 'No other event is parked.'}</p>
      ) : (
        <ShownTable
          caption="Parked events, the oldest first"
          rows={PARKED}
          all={events}
          cells={{
            [SENT]: ({ body, length, vbid, seq }) =>
              body !== null && <Body body={body} length={length} rest={`All of it: ${productPath(vbid, seq)}`} />,
            Decision: ({ seq, state }) =>
              state === 'refused' && (
                <ActionForm
                  action="skip"
                  target={name}
                  argument={seq}
                  label="Skip"
                  explanation={`Event ${count(seq)} is never delivered to this sink. The later events of its product, which waited, are delivered.`}
                />
              ),
          }}
        />
      )}
      <nav class="pages" aria-label="Pages of the parked events">
        {after > 0 && <a href={`${sinkPath(name)}#parked`}>First parked events</a>}
        {next !== null && (
          <a href={`${addressOf(sinkPath(name), { ...given, after: `${next}` })}#parked`}>More parked events</a>
        )}
      </nav>
    </>
  );
  return { id: 'parked', title: 'Parked events', live: true, content };
}

/** One sink: its state, what may be decided about it, and its parked events. */
export const sink: View = {
  path: '/sinks/:name',
  find: findPreview,
  show: ({ store, clock }, visit) => {
    const { params, query } = visit;
    const { name = '' } = params;
    const row = requireSink(store, name);
    const nowMs = clock.now();
    const seen = seenSink(store, row, nowMs, row);
    const state = (
      <>
        <NoRelay store={store} nowMs={nowMs} />
        <p>{meaningOf(seen.state)}</p>
        <ShownFacts rows={SINK.slice(1)} of={seen} />
      </>
    );
    return {
      title: `Sink ${row.name}`,
      sections: [
        { id: 'state', live: true, content: state },
        curvesSection(store, row.id, nowMs),
        { id: 'decide', title: 'Decide', live: true, content: <Decisions row={row} sink={seen} /> },
        { id: 'replay', title: 'Deliver again', content: <Replay name={row.name} /> },
        previewSection(visit, seen.view),
        decisionsSection(store, nowMs, row.name),
        parkedSection(store, row, query),
      ],
    };
  },
};
