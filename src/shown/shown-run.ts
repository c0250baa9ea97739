import { iso } from '@catchword/base/iso-time';
import { CHANGE_OPS, type ChangeOp, type Evidence, type Run } from '@catchword/catalog/run-types';
import * as z from 'zod';
import { reasonText } from '../report/reason-text.ts';
import { noteTexts, unusualText } from '../report/run-text.ts';
import { proofName, stateName } from '../report/run-words.ts';
import { count as counted, duration } from '../report/text.ts';
import { count, list, oneOf, text, textOrNull } from './described.ts';
import { COUNT, type JsonOf, jsonOf, type Row, schemaOf, TIME, type Tone } from './shown-row.ts';

const LIST_EVIDENCE = z.object({
  pass: count('The pass that read it.'),
  kind: oneOf('The whole list, or the changes of a time range.', 'list', 'delta'),
  windows: count('Windows of the first pass.'),
  repairs: count('Windows read again to repair seams.'),
  overlap: z.number().meta({ description: 'Products that neighbouring windows share, on average.' }),
  overlap_least: z.number().meta({ description: 'The fewest products that neighbouring windows share.' }),
  seams: text('One letter for each seam, in list order: `j` joined, `r` repaired, `o` open.'),
});

const EVIDENCE = z.object({
  requests: count('Requests made.'),
  deltas: count('Deltas read.'),
  lookups: count('Products looked up one by one.'),
  seen: count('Products that the run saw.'),
  num_items: count('Products that the source counts.'),
  lists: list('The lists that were read in several windows.', LIST_EVIDENCE),
  updated_share: z.number().meta({ description: 'How many products the run updated, as a share of all; 1: all.' }),
  common_change: textOrNull(
    'Only if the run updated nearly every product: JSON pointer of the field that changed most often, with `*` for elements of arrays; null if it is not known.',
  ).optional(),
  in_part: z
    .object({
      items: count('Items that show a product in part.'),
      left_out: list('Members that they left out.', z.string()),
      shown: list('Members that earlier deltas left out, and that these show.', z.string()),
    })
    .optional()
    .meta({ description: 'Only if deltas showed products in part, or no longer do.' }),
  twice: z
    .object({
      products: count('How many the list has twice, as is proven.'),
      vbids: list('The keys of up to 100: of these, and then of products of which it is likely.', z.string()),
    })
    .optional()
    .meta({ description: 'Only if the list shows products twice, with two contents.' }),
  changed_settings: z.string().optional().meta({ description: 'Of the first full run with other settings: which.' }),
});

function evidenceJson({ numItems, lists, updatedShare, commonChange, changedSettings, inPart, ...rest }: Evidence) {
  const listed = lists.map(({ overlapLeast, ...list }) => ({ ...list, overlap_least: overlapLeast }));
  const part = inPart && { items: inPart.items, left_out: inPart.leftOut, shown: inPart.shown };
  const causes = { common_change: commonChange, changed_settings: changedSettings, in_part: part };
  return { ...rest, num_items: numItems, updated_share: updatedShare, lists: listed, ...causes };
}

const EMPTIED = z.record(z.string(), z.int());
const UNUSUAL = z.object({
  from: count('The first change that was not delivered yet when the run became unusual.'),
  field: text('A column of the view `catalog`, or `prices`.'),
  products: count('Products whose field the run, and those of the 24 hours before it, emptied.'),
  earlier: count('Of these, what earlier runs emptied; absent: nothing.').optional(),
  living: count('All products then.'),
});

const TONES: Record<Run['state'], Tone> = {
  planned: 'soft',
  reading: 'accent',
  complete: 'good',
  held: 'warn',
  failed: 'bad',
  cancelled: 'soft',
};
export const RUN_STATES = Object.keys(TONES) as Run['state'][];

/** `12 created, 3 removed`; `none`. */
export function changesText(run: Pick<Run, ChangeOp>): string {
  const some = CHANGE_OPS.filter((op) => run[op] > 0).map((op) => `${counted(run[op])} ${op}`);
  return some.length === 0 ? 'none' : some.join(', ');
}

function proofTone({ proof }: Run): Tone {
  return proof === 'sealed' ? 'good' : proof === 'open' ? 'warn' : 'soft';
}

/** A run, with the names of the view `run_log`. */
// biome-ignore format: a row is a line.
export const RUN = [
  { key: 'id', label: 'Run', list: 'column', schema: COUNT, about: 'The number of the run.', value: ({ id }) => id, text: ({ id }) => ({ text: `Run ${id}`, href: `/runs/${id}` }) },
  { key: 'kind', label: 'Kind', list: 'column', schema: z.enum(['full', 'delta']), about: 'All products, or what changed since the last run.', value: ({ kind }) => kind },
  { key: 'state', label: 'State', list: 'column', schema: z.enum(RUN_STATES), about: '`held`: the run waits for a decision about removals.', value: ({ state }) => state, text: (run) => `${stateName(run)}${run.unusual === null ? '' : ', unusual'}`, tone: ({ state, unusual }) => (unusual === null ? TONES[state] : 'warn') },
  { key: 'proof', label: 'Proof', list: 'column', schema: z.enum(['sealed', 'open']).nullable(), about: '`sealed`: the run has seen every product. Null for a delta of one page.', value: ({ proof }) => proof, text: proofName, tone: proofTone },
  { key: 'started_at', label: 'Started', list: 'column', schema: TIME.nullable(), about: 'When it started.', value: ({ startedAt }) => iso(startedAt), text: ({ startedAt }) => ({ at: startedAt }) },
  { key: 'pages', label: 'Pages', list: 'column', schema: COUNT, about: 'Pages applied.', value: ({ pages }) => pages },
  { key: 'items', label: 'Products read', list: 'column', schema: COUNT, about: 'Items in these pages.', value: ({ items }) => items },
  { key: 'changes', label: 'Changes', list: 'column', about: 'What it changed.', value: changesText },
  { key: 'created', schema: COUNT, about: 'Products created.', value: ({ created }) => created },
  { key: 'updated', schema: COUNT, about: 'Products updated.', value: ({ updated }) => updated },
  { key: 'removed', schema: COUNT, about: 'Products removed.', value: ({ removed }) => removed },
  { key: 'restored', schema: COUNT, about: 'Removed products that the source has again.', value: ({ restored }) => restored },
  { key: 'missing', schema: COUNT, about: 'Living products that a full run did not see.', value: ({ missing }) => missing },
  { key: 'rejected', label: 'Rejected', list: 'column', schema: COUNT, about: 'Items that are not valid products.', value: ({ rejected }) => rejected },
  { key: 'requests', schema: COUNT, about: 'Requests made to the source.', value: ({ requests }) => requests },
  { key: 'reasons', schema: z.array(z.string()).readonly(), about: 'Why the proof is open, one sentence each.', value: ({ reasons }) => reasons.map(reasonText) },
  { key: 'error', schema: z.string().nullable(), about: 'Why the run failed.', value: ({ error }) => error },
  { key: 'emptied', schema: EMPTIED.nullable(), about: 'Of how many products its updates emptied each field; null if they emptied none.', value: ({ emptied }) => emptied },
  { key: 'unusual', label: 'Note', schema: UNUSUAL.nullable(), about: 'Why it is unusual: it emptied a field of more products than CATCHWORD_LOSS_LIMIT allows. Null if it is not.', value: ({ unusual }) => unusual, text: (run) => [...(run.unusual === null ? [] : [`It ${unusualText(run.unusual).title}.`]), ...noteTexts(run)].map((said) => ({ text: said })), tone: () => 'warn' },
  { key: 'evidence', schema: EVIDENCE.nullable(), about: 'The figures behind the proof. Null until the run ends.', value: ({ evidence }) => evidence && evidenceJson(evidence) },
  { key: 'from_time', schema: TIME.nullable(), about: "Start of a delta's time range; null for a full run.", value: ({ from }) => iso(from) },
  { key: 'source_time', schema: TIME.nullable(), about: "The source's clock when the run began to read.", value: ({ sourceTime }) => iso(sourceTime) },
  { key: 'finished_at', schema: TIME.nullable(), about: 'When it ended.', value: ({ finishedAt }) => iso(finishedAt) },
  { key: 'settles_at', schema: TIME.nullable(), about: 'When it stops waiting and reads its last delta; null if it is not waiting.', value: ({ settlesAt }) => iso(settlesAt) },
] as const satisfies readonly Row<Run>[];

export const RUN_SCHEMA = schemaOf('Run', 'One load of the catalog.', RUN);

/** A run for programs. */
export function runJson(run: Run): JsonOf<typeof RUN> {
  return jsonOf(RUN, run);
}

/** How long a run took, or has been running. */
export function tookRow(nowMs: number) {
  return {
    key: 'took',
    label: 'Took',
    list: 'column',
    about: 'How long it took so far.',
    value: ({ startedAt, finishedAt }) => duration((finishedAt ?? nowMs) - startedAt),
  } as const satisfies Row<Run>;
}

/** The rows of a run for a table of runs. */
export function runRows(nowMs: number): readonly Row<Run>[] {
  return RUN.flatMap((row): Row<Run>[] => (row.key === 'started_at' ? [row, tookRow(nowMs)] : [row]));
}
