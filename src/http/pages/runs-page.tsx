import { CHANGE_OPS, type ChangeOp, type Run } from '../../catalog/run-types.ts';
import { proofName, stateName } from '../../report/run-words.ts';
import { count, duration } from '../../report/text.ts';
import { ActionForm } from './action-form.tsx';
import { decisionsSection } from './actions-page.tsx';
import { Table } from './page-table.tsx';
import { When } from './page-time.tsx';
import { numberIn, type View } from './page-view.ts';

/** Runs on a page. */
const LISTED = 50;

/** `12 created, 3 removed`; `none`. */
export function changesText(run: Pick<Run, ChangeOp>): string {
  const some = CHANGE_OPS.filter((op) => run[op] > 0).map((op) => `${count(run[op])} ${op}`);
  return some.length === 0 ? 'none' : some.join(', ');
}

/** The state or the proof of a run. */
export function Mark({ word, tone }: { readonly word: string; readonly tone: string }) {
  return <span class={`mark ${tone}`}>{word}</span>;
}

const TONES: Record<Run['state'], string> = {
  planned: 'soft',
  reading: 'accent',
  complete: 'good',
  held: 'warn',
  failed: 'bad',
  cancelled: 'soft',
};

export function StateMark({ run }: { readonly run: Run }) {
  if (run.unusual !== null) return <Mark word={`${stateName(run)}, unusual`} tone="warn" />;
  return <Mark word={stateName(run)} tone={TONES[run.state]} />;
}

export function ProofMark({ run }: { readonly run: Run }) {
  return <Mark word={proofName(run)} tone={run.proof === 'sealed' ? 'good' : run.proof === 'open' ? 'warn' : 'soft'} />;
}

function RunTable({ runs, nowMs }: { readonly runs: readonly Run[]; readonly nowMs: number }) {
  return (
    <Table
      caption="Runs that wait for a decision, then the newest first. A sealed run has proven that it missed nothing."
      columns={{
        Run: ({ id }) => <a href={`/runs/${id}`}>{`Run ${id}`}</a>,
        Kind: ({ kind }) => kind,
        State: (run) => <StateMark run={run} />,
        Proof: (run) => <ProofMark run={run} />,
        Started: ({ startedAt }) => <When at={startedAt} />,
        Took: ({ startedAt, finishedAt }) => duration((finishedAt ?? nowMs) - startedAt),
        'Products read': ({ items }) => count(items),
        Changes: changesText,
      }}
      numbers={['Took', 'Products read']}
      rows={runs}
    />
  );
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

/** The runs, the newest first. */
export const runs: View = {
  path: '/runs',
  show: ({ store, clock }, { query }) => {
    const nowMs = clock.now();
    const before = numberIn(query, 'before');
    const found = store.runs.list(LISTED + 1, before ?? undefined);
    const shown = found.slice(0, LISTED);
    const waiting = before === null ? store.runs.held() : [];
    const others = shown.filter(({ id }) => !waiting.some((run) => run.id === id));
    const list = (
      <>
        {shown.length === 0 ? (
          <p>{before === null ? 'No run yet. Start a full load to fill the mirror.' : 'No older runs exist.'}</p>
        ) : (
          <RunTable runs={[...waiting, ...others]} nowMs={nowMs} />
        )}
        <p class="pages">
          {before !== null && <a href="/runs">Newest runs</a>}
          {found.length > LISTED && <a href={`/runs?before=${shown.at(-1)?.id}`}>Older runs</a>}
        </p>
      </>
    );
    return {
      title: 'Runs',
      sections: [
        { id: 'runs', live: before === null, content: list },
        { id: 'start', title: 'Start a load', content: <StartForms /> },
        // What becomes of a start is shown where it was asked for.
        ...(before === null ? [decisionsSection(store, nowMs)] : []),
      ],
    };
  },
};
