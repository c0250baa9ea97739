import { holdOf } from '@catchword/catalog/reasons';
import type { Run } from '@catchword/catalog/run-types';
import type { Pass } from '../store/rows/runs.ts';
import { count, plural } from './text.ts';

/** The state of a run in a word or two, for a list. */
export function stateName(run: Pick<Run, 'state' | 'settlesAt' | 'reasons'>): string {
  if (run.settlesAt !== null) return 'waiting for late changes';
  const verdict = holdOf(run)?.verdict ?? null;
  if (verdict !== null) return `removals ${verdict}`;
  return run.state === 'held' ? 'needs a decision' : run.state;
}

/** Describes the kind of a load, and its purpose. */
export function kindWords({ kind }: Pick<Run, 'kind'>): string {
  return kind === 'full'
    ? 'A full load: it reads the whole catalog, and finds what was removed.'
    : 'A delta load: it reads what has changed since the last complete load.';
}

const STAGES: Record<Pass['kind'], string> = {
  list: 'It reads the catalog.',
  delta: 'It reads what changed while it read.',
  catchup: 'The source put its clock back, so it reads earlier changes again.',
  repair: 'It reads again where neighbouring windows did not join.',
  lookup: 'It looks up products that it has not seen, one by one.',
  settle: 'It reads the changes that became visible late.',
};

/** Says what a run that is not finished does now. @param passes in order */
export function stageWords(run: Pick<Run, 'state' | 'kind' | 'settlesAt'>, passes: readonly Pass[]): string {
  if (run.settlesAt !== null) return 'It has read everything and waits, because the source may show changes late.';
  const last = passes.at(-1);
  if (run.state === 'planned' || last === undefined) return 'It is planned, and has not read anything yet.';
  if (last.pass === 0 && last.kind === 'delta') return 'It reads what changed.';
  if (last.kind === 'list' && last.pass > 0) return 'It reads the catalog again, because the first reading had gaps.';
  return STAGES[last.kind];
}

/** Names the proof of a run. */
export function proofName({ proof, state }: Pick<Run, 'proof' | 'state'>): string {
  if (proof !== null) return proof;
  return state === 'complete' ? 'not needed' : '–';
}

/** Says what becomes, or became, of the products whose removal a run held; null if they were removed, or if it held none. */
function holdWords(run: Run): string | null {
  const hold = holdOf(run);
  if (hold === undefined || hold.verdict === 'approved') return null;
  const { state, missing, error, proof } = run;
  const some = proof === 'sealed' ? plural(missing, 'product') : 'products';
  if (state === 'held') return `The removal of ${some} that it did not see waits for a decision.`;
  if (hold.verdict === null) return `The removals that it held are outdated: ${error}.`;
  return `An operator rejected the removal of ${some} that it did not see: they stay in the mirror.`;
}

/** Explains a sealed proof, in sentences. */
export function sealedWords(run: Run): string[] {
  const { evidence, removed, kind } = run;
  const lists = evidence?.lists ?? [];
  const seams = lists.reduce((sum, list) => sum + list.seams.length, 0);
  const repaired = lists.reduce((sum, list) => sum + list.seams.split('r').length - 1, 0);
  const how =
    seams === 0
      ? 'One response held the whole list, so nothing could slip between two pages.'
      : `Every window overlaps the next. All ${plural(seams, 'seam')} between them closed${
          repaired === 0 ? '' : `, ${count(repaired)} of them after the place was read again`
        }, so nothing could slip between two pages.`;
  if (kind === 'delta') return ['Nothing that changed was missed.', how];
  const gone =
    holdWords(run) ??
    (removed === 0
      ? 'No product had to be removed.'
      : `${plural(removed, 'product')} that the source no longer has ${removed === 1 ? 'was' : 'were'} removed${holdOf(run) === undefined ? '' : ' after an operator approved it'}.`);
  return ['The mirror held every product of the source when this run ended.', how, gone];
}

/** Explains the consequences of an open proof, in sentences. */
export function openWords(run: Run): string[] {
  const { kind, missing } = run;
  const what = ['What was read is in the mirror. It could not be proven that nothing was missed.'];
  if (kind === 'delta') return [...what, 'The next load reads the same time again.'];
  what.push('No product is removed only because this run did not see it.');
  const hold = holdWords(run);
  if (hold !== null) what.push(hold);
  else if (missing > 0) {
    what.push(
      `${plural(missing, 'product')} ${missing === 1 ? 'was' : 'were'} not seen and ${missing === 1 ? 'stays' : 'stay'} in the mirror, until a sealed run, a lookup, or several full runs in a row show that they are gone.`,
    );
  }
  return what;
}
