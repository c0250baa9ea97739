import { CHANGE_OPS, type Run } from '@catchword/catalog/run-types';
import { noteTexts, proofLine, settlingText, updatesText, warningText } from '../report/run-text.ts';
import { type Colours, count, duration, plural } from '../report/text.ts';
import { type Row, saidOf, textOf } from './shown-row.ts';

/** What a run did: the facts of its page, and what a command that ends with a run prints. */
// biome-ignore format: a row is a line.
export const SUMMARY = [
  { key: 'read', label: 'Read', about: 'What it read.', value: ({ items, pages, requests }) => `${plural(items, 'product')}, ${plural(pages, 'page')}, ${plural(requests, 'request')}` },
  { key: 'changes', label: 'Changes', about: 'What it changed.', value: (run) => CHANGE_OPS.map((op) => `${count(run[op])} ${op}`).join(', ') },
  { key: 'updates', label: 'Updated', about: 'The share of the products that it updated, and the fields that it emptied.', value: updatesText },
  { key: 'rejected', label: 'Rejected', about: 'Items that are not valid products.', value: ({ rejected }) => rejected, text: ({ rejected }) => (rejected === 0 ? null : { text: plural(rejected, 'item'), href: '#rejected' }) },
  { key: 'missing', label: 'Missing', about: 'Products that it did not see.', value: ({ missing }) => missing, text: ({ missing, settlesAt }) => missing === 0 || settlesAt !== null ? null : `${plural(missing, 'product')} not seen and not removed` },
] as const satisfies readonly Row<Run>[];

/** Summarizes a run for a person. */
export function runSummary(c: Colours, run: Run, nowMs: number): string {
  const { id, kind, state, startedAt, finishedAt, error } = run;
  const facts = SUMMARY.flatMap((row) =>
    saidOf(row, run).map((said) => {
      const more = row.key === 'rejected' ? `: npx catchword run ${id}` : '';
      return `  ${row.label.toLowerCase().padEnd(9)}${textOf(said)}${more}`;
    }),
  );
  const warning = warningText(run);
  const notes = [...(warning === null ? [] : [c.yellow(warning)]), ...noteTexts(run), settlingText(run) ?? []].flat();
  return [
    `run ${id}: ${kind} load ${state === 'complete' ? c.green(state) : c.yellow(state)} in ${duration((finishedAt ?? nowMs) - startedAt)}`,
    ...facts,
    ...notes.map((note) => `  ${note}`),
    ...proofLine(run, undefined, c.dim),
    ...(error === null ? [] : [`  error    ${error}`]),
  ].join('\n');
}
