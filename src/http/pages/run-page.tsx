import { setImmediate as otherWork } from 'node:timers/promises';
import { CatchwordError } from '@catchword/base/errors';
import { type Run, whyNoRun } from '@catchword/catalog/run-types';
import { CHART_LEAST_MS, paceSeries, perMinute, predictedEnd, requestsInLastMinute } from '../../report/run-pace.ts';
import { picturesOf } from '../../report/run-picture.ts';
import { noteTexts, settlingText, warningText } from '../../report/run-text.ts';
import { type RunWatch, watchRun } from '../../report/run-watch.ts';
import { kindWords, stageWords } from '../../report/run-words.ts';
import { count, duration, plural } from '../../report/text.ts';
import { SUMMARY } from '../../shown/run-summary.ts';
import { rowsOf } from '../../shown/shown-row.ts';
import { RUN, tookRow } from '../../shown/shown-run.ts';
import { ActionForm } from './action-form.tsx';
import { decisionsSection } from './actions-page.tsx';
import { ShownFacts } from './page-shown.tsx';
import { When } from './page-time.tsx';
import { type Address, numberIn, type PageParts, type Section, type View } from './page-view.ts';
import { heldSection } from './run-held.tsx';
import { Picture } from './run-picture-section.tsx';
import { Proof } from './run-proof.tsx';
import { rejectedSection } from './run-rejected.tsx';
import { RunMark } from './runs-page.tsx';
import { capitalized, Shown } from './untrusted-text.tsx';

const STARTED = rowsOf(RUN, 'started_at');

/** @throws CatchwordError NOT_FOUND */
function runOf({ store }: PageParts, { params }: Address): Run {
  const { id = '' } = params;
  const number = /^\d{1,15}$/.test(id) ? Number(id) : null;
  const run = number === null ? undefined : store.runs.get(number);
  if (run !== undefined) return run;
  const what = number === null ? `run ${id} does not exist` : whyNoRun(number, store.runs.lastId());
  throw new CatchwordError('NOT_FOUND', what, { hint: 'See all runs at /runs.' });
}

interface Scene {
  readonly parts: PageParts;
  readonly run: Run;
  readonly watch: RunWatch;
  readonly nowMs: number;
  readonly isOver: boolean;
}

/** The list that is being read, and how much of it. */
function progressOf({ watch }: Scene): { readonly read: number; readonly planned: number } {
  const list = watch.lists().at(-1);
  return { read: list?.read() ?? 0, planned: list?.size() ?? 0 };
}

function Progress({ scene }: { readonly scene: Scene }) {
  const { run, watch } = scene;
  const { read, planned } = progressOf(scene);
  const isReading = watch.passes().at(-1)?.kind !== 'repair' && run.settlesAt === null;
  if (read === 0 || !isReading) return null;
  const percent = Math.floor((100 * read) / planned);
  return (
    <p class="progress">
      <progress max={planned} value={read} aria-label="Windows read" />
      {` ${count(read)} of ${plural(planned, 'window')} (${percent}%)`}
    </p>
  );
}

function Waiting({ scene: { parts, nowMs } }: { readonly scene: Scene }) {
  const { store } = parts;
  const pause = store.source.pause(nowMs);
  if (pause !== null) {
    return (
      <p class="note warn">
        The source asked for a pause. The next request is sent at <When at={pause.until} />.
      </p>
    );
  }
  if (store.keeperLease.holder(nowMs) !== null) return null;
  return (
    <p class="note warn">
      No process works on this run. It goes on where it stopped when the daemon starts, or with npx catchword sync.
    </p>
  );
}

function End({ scene }: { readonly scene: Scene }) {
  const { parts, run, watch, nowMs } = scene;
  if (parts.store.keeperLease.holder(nowMs) === null) return <>not known: no process works on it</>;
  const { read, planned } = progressOf(scene);
  const settleMs = watch.lists().some((list) => list.moved()) ? parts.overlapMs : 0;
  const end = predictedEnd({
    run,
    seconds: watch.seconds(),
    windows: planned - read,
    pausedUntil: parts.store.source.pause(nowMs)?.until ?? null,
    settleMs,
    nowMs,
  });
  if (end === null) return <>not known yet</>;
  const wait = settleMs > 0 && run.settlesAt === null ? `, with a wait of ${duration(settleMs)} for late changes` : '';
  return (
    <>
      {`in ${duration(end - nowMs)} `}
      <small>
        about <When at={Math.round(end / 1000) * 1000} />
        {wait}
      </small>
    </>
  );
}

function RetryNote({ scene: { parts, run } }: { readonly scene: Scene }) {
  if (run.state !== 'failed') return null;
  const retry = parts.store.schedule.retry();
  const isNewest = parts.store.runs.list(1)[0]?.id === run.id;
  return (
    <div class="note bad">
      <p>
        <strong>What failed:</strong> <Shown text={run.error ?? 'not noted'} most={2_000} />
      </p>
      <p>
        {retry !== null && isNewest ? (
          <>
            It is tried again at <When at={retry.at} />, and at once if the daemon restarts.
          </>
        ) : (
          'It is not tried again by itself. The next scheduled load reads what it missed.'
        )}{' '}
        What it read before is kept.
      </p>
    </div>
  );
}

function RunFigures({ scene }: { readonly scene: Scene }) {
  const { parts, run, watch, nowMs, isOver } = scene;
  const limit = perMinute(parts.rateLimit);
  const lists = watch.lists();
  const total = lists.findLast((list) => list.pass.kind === 'list')?.total() ?? null;
  const repaired = run.evidence?.lists.map((list) => list.repairs) ?? lists.map((list) => list.repairs());
  const repairs = repaired.reduce((sum, some) => sum + some, 0);
  const allowed = limit === null ? 'no limit' : `of ${count(limit)} allowed`;
  return (
    <ShownFacts
      areBoxed
      rows={[...SUMMARY, { ...tookRow(nowMs), ...(!isOver && { label: 'Running for' }) }, ...STARTED]}
      of={run}
      more={{
        'Products of the source': total !== null && !isOver && `about ${count(total)}; overlaps count twice`,
        'Requests in the last minute': !isOver && (
          <>
            {count(requestsInLastMinute(watch.seconds(), nowMs))} <small>{allowed}</small>
          </>
        ),
        'Read again to close seams': repairs > 0 && plural(repairs, 'window'),
        'Expected end': !isOver && <End scene={scene} />,
      }}
    />
  );
}

function Headline({ scene }: { readonly scene: Scene }) {
  const { run, watch, isOver } = scene;
  const warning = warningText(run);
  return (
    <>
      <p class="verdict">
        <RunMark run={run} of="state" />
        {isOver && run.proof !== null && ' '}
        {isOver && run.proof !== null && <RunMark run={run} of="proof" />}
      </p>
      <p>{kindWords(run)}</p>
      {!isOver && <p>{stageWords(run, watch.passes())}</p>}
      {!isOver && run.settlesAt !== null && <p>{capitalized(settlingText(run) ?? '')}.</p>}
      {!isOver && <Progress scene={scene} />}
      {!isOver && <Waiting scene={scene} />}
      <RetryNote scene={scene} />
      {run.state === 'cancelled' && <p>{run.error ?? 'It was cancelled. What it had read is kept.'}</p>}
      {warning !== null && <p class="note warn">{warning}</p>}
      {noteTexts(run).map((text) => (
        <p class="note">{text}</p>
      ))}
      <RunFigures scene={scene} />
    </>
  );
}

function Decide({ parts: { store }, run, isOver }: Scene) {
  if (!isOver) {
    return (
      <ActionForm
        action="cancel"
        target={run.id}
        label="Cancel this run"
        explanation="It stops at the next page. What it has read is kept; nothing is removed. The next load starts as scheduled."
      />
    );
  }
  // What an undo did not restore has changed since, so another one would do nothing.
  const isUndone = store.actions.of(String(run.id), ['undo'], 1)[0]?.state === 'done';
  if (run.removed === 0 || isUndone) return null;
  return (
    <ActionForm
      action="undo"
      target={run.id}
      label="Undo its removals"
      explanation="Products that this run removed come back as they were, unless they have changed since. Sinks get each as restored. If the source still does not have them, the next full load removes them again, or asks."
    />
  );
}

/** Pictures of the lists; null for a run that has ended and has no seams, which its proof says. */
function windowsOf(scene: Scene) {
  const { run, watch, isOver } = scene;
  const pictures = picturesOf(watch, run).filter(({ read, planned }) => read > 0 && planned > 1);
  if (pictures.length > 0) return <Picture pictures={pictures} run={run} />;
  if (isOver && run.evidence === null && watch.isGone(run)) {
    return <p>Which windows it read is kept only until a later run completes.</p>;
  }
  if (isOver) return null;
  if (progressOf(scene).read > 0)
    return <p>One response held everything so far. A list has seams only if it takes several.</p>;
  return <p>Nothing is read yet. The first answer tells how long the list is.</p>;
}

/** Requests a minute over the time of the run, against the limit. */
function Pace({ scene: { parts, run, watch, nowMs, isOver } }: { readonly scene: Scene }) {
  const limit = perMinute(parts.rateLimit);
  const rule =
    limit === null ? 'No limit is set (CATCHWORD_RATE_LIMIT is off).' : `The limit is ${count(limit)} a minute.`;
  const isGone = watch.isGone(run);
  const series = isGone ? null : paceSeries(watch.seconds(), isOver ? null : nowMs);
  if (series === null) {
    const isLong = (run.finishedAt ?? nowMs) - run.startedAt >= CHART_LEAST_MS;
    const gone = isGone && isLong ? ' When each was made is kept only until a later run completes.' : '';
    const why =
      run.requests === 0 ? 'No request was answered yet.' : `${plural(run.requests, 'request')} in all.${gone}`;
    return <p>{`${why} ${rule}`}</p>;
  }
  const { from, step, requests: points } = series;
  const most = points.reduce((a, b) => Math.max(a, b), 0);
  return (
    <figure
      class="pace"
      data-from={from}
      data-step={step}
      data-requests={points.join(',')}
      data-limit={limit ?? undefined}
    >
      <figcaption>
        {`Each point counts the requests of the minute before it: at most ${count(most)}. ${plural(run.requests, 'request')} in all. ${rule}`}
      </figcaption>
      <div id="drawn-pace" data-drawn="" />
    </figure>
  );
}

/** One run: its state, a picture of everything that it read, and its proof. */
export const run: View = {
  path: '/runs/:id',
  // In steps, so that other requests need not wait until thousands of windows are read.
  prepare: async (parts, address) => {
    const { store } = parts;
    const watch = watchRun(store, runOf(parts, address).id);
    while (!store.read(() => watch.update())) await otherWork();
  },
  show: (parts, visit) => {
    const found = runOf(parts, visit);
    const watch = watchRun(parts.store, found.id);
    // Usually one step: `prepare` has read the others, unless pages of other runs took the watch's place meanwhile.
    while (!watch.update());
    const isOver = found.finishedAt !== null;
    const scene = { parts, run: found, watch, nowMs: parts.clock.now(), isOver };
    // Live after its end, too: a tab in the background may return when it is over.
    const live = true;
    const windows = windowsOf(scene);
    const sections: Section[] = [
      { id: 'headline', live, content: <Headline scene={scene} /> },
      heldSection(parts.store, found, numberIn(visit.query, 'held')),
      { id: 'windows', ...(windows !== null && { title: 'Windows and seams' }), live, content: windows },
      { id: 'proof', title: 'What it has proven', live, content: <Proof run={found} /> },
      { id: 'pace', title: 'Requests a minute', live, content: <Pace scene={scene} /> },
      rejectedSection(parts.store, found),
      { id: 'decide', live, content: Decide(scene) },
      decisionsSection(parts.store, scene.nowMs, found.id),
    ];
    return { title: `Run ${found.id}`, draws: true, sections };
  },
};
