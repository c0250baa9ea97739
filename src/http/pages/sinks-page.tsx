import { type SinkSummary, sinkSummary } from '../../report/sink-report.ts';
import { otherSettingsTexts, serversOf } from '../../report/status-report.ts';
import { count, plural } from '../../report/text.ts';
import type { Store } from '../../store/store.ts';
import { Table } from './page-table.tsx';
import { roughly, When } from './page-time.tsx';
import type { View } from './page-view.ts';
import { Shown, sentence } from './untrusted-text.tsx';

type Tone = 'good' | 'warn' | 'bad' | 'soft';

/** States of sinks: the tone, the meaning and what to do, and the name on pages if it is another one. */
const STATES: Readonly<Record<string, readonly [tone: Tone, meaning: string, label?: string]>> = {
  live: ['good', 'It gets every change as it is recorded.'],
  backfill: ['good', 'It is being filled with the current products; then it gets every change.', 'initial load'],
  reconciling: ['good', 'It gets only the products of which its store has something else; then it gets every change.'],
  held: ['bad', 'Nothing is delivered before you decide, because the next events may do harm.'],
  retrying: [
    'warn',
    'The store cannot be reached, or a setting is wrong. Fix what the error names; catchword retries, with growing ' +
      'pauses up to a minute. Resume retries at once.',
  ],
  paused: ['warn', 'An operator paused it. It gets nothing until it is resumed; the change log keeps what it needs.'],
  stopped: [
    'bad',
    'It gets nothing, because the error below needs a decision. Fix the cause, then retry to redeliver parked ' +
      'events, or resume without them. If the store belongs to another mirror, replay, then resume.',
  ],
  disabled: [
    'bad',
    'It was too far behind, so the change log no longer waits for it. Resume: it gets the right products again, and ' +
      'the changes that it did not get are listed.',
  ],
  'not configured': [
    'soft',
    'The settings no longer name it, so the log no longer waits for it. Configure it again to continue.',
  ],
};

export function wordsOf(state: string) {
  const [tone, meaning, label = state] = STATES[state] ?? ['soft', ''];
  return { tone, meaning, label };
}

export function SinkMark({ state }: { readonly state: string }) {
  const { label, tone } = wordsOf(state);
  return <strong class={`mark ${tone}`}>{label}</strong>;
}

/** The lag of a sink, in changes and in time. */
export function lagText(sink: Pick<SinkSummary, 'lag_records' | 'lag_seconds'>): string {
  const { lag_records: records, lag_seconds: seconds } = sink;
  if (records <= 0) return 'up to date';
  return `${plural(records, 'change')}${seconds === null ? '' : `, for ${roughly(seconds * 1000)}`}`;
}

export function LastError({ sink: { error, error_at: at } }: { readonly sink: SinkSummary }) {
  return (
    <>
      <Shown text={error} most={500} />
      {error !== null && at !== null && (
        <>
          {' '}
          (<When at={at} />)
        </>
      )}
    </>
  );
}

/** Says which settings are not in use. */
function OtherSettings({ store, nowMs }: { readonly store: Store; readonly nowMs: number }) {
  return otherSettingsTexts(serversOf(store, nowMs)).map((text) => <p class="note warn">{sentence(text)}</p>);
}

/** Says that nothing is delivered, if that is so. */
export function NoRelay({ store, nowMs }: { readonly store: Store; readonly nowMs: number }) {
  if (store.relayLease.holder(nowMs) !== null) return null;
  return (
    <p class="note warn">
      No daemon or relay is running, so no sink gets anything. Start <code>npx catchword daemon</code>.
    </p>
  );
}

export function sinkPath(name: string): string {
  return `/sinks/${encodeURIComponent(name)}`;
}

const COLUMNS = {
  Sink: ({ name }: SinkSummary) => <a href={sinkPath(name)}>{name}</a>,
  State: ({ state }: SinkSummary) => <SinkMark state={state} />,
  Behind: lagText,
  Rate: ({ rate }: SinkSummary) => `${count(Math.round(rate))}/s`,
  Parked: ({ name, parked }: SinkSummary) =>
    parked === 0 ? '0' : <a href={`${sinkPath(name)}#parked`}>{count(parked)}</a>,
  Gaps: ({ gaps }: SinkSummary) => count(gaps.length),
  'Last error': (sink: SinkSummary) => <LastError sink={sink} />,
  Where: ({ kind, address }: SinkSummary) => (
    <>
      {kind} <Shown text={address} most={100} />
    </>
  ),
};

const NO_SINKS = (
  <p>
    The change log feeds no store yet. Set <code>CATCHWORD_SINK_&lt;NAME&gt;</code>, such as{' '}
    <code>CATCHWORD_SINK_FILE=jsonl:data/changes.jsonl</code>, and restart the daemon. A sink appears here when it is
    fed for the first time.
  </p>
);

const urgency = ({ state, parked }: SinkSummary): number =>
  ['bad', 'warn', 'good', 'soft'].indexOf(wordsOf(state).tone) - (parked > 0 ? 2 : 0);

/** Every sink that the mirror knows, the most urgent first. */
export const sinks: View = {
  path: '/sinks',
  show: ({ store, clock }) => {
    const nowMs = clock.now();
    const known = store.sinks.list().map((sink) => sinkSummary(store, sink, nowMs));
    known.sort((a, b) => urgency(a) - urgency(b));
    const table = (
      <>
        <NoRelay store={store} nowMs={nowMs} />
        <Table
          caption="The stores that the change log feeds"
          columns={COLUMNS}
          numbers={['Rate', 'Parked', 'Gaps']}
          rows={known}
          idOf={({ name }) => `sink-${name}`}
        />
      </>
    );
    const content = (
      <>
        <OtherSettings store={store} nowMs={nowMs} />
        {known.length === 0 ? NO_SINKS : table}
      </>
    );
    return { title: 'Sinks', sections: [{ id: 'sinks', live: true, content }] };
  },
};
