import * as z from 'zod';
import { type Field, STORED, type StoredColumns, SUMMARY, type SummaryColumns } from '../catalog/fields.ts';
import { PRODUCT } from '../catalog/product-type.ts';
import { EVENT } from '../events/event-schema.ts';
import { FRESHNESS } from '../state/mirror-state.ts';
import { STATUS as STATUS_OF } from './http-error.ts';

/* The answers of the API, as /openapi.json describes them. A route's own type is checked against them. */

const orNull = <T extends z.ZodType>(description: string, schema: T) => schema.nullable().meta({ description });
const time = (description: string) => z.string().meta({ format: 'date-time', description });
const timeOrNull = (description: string) => orNull(description, z.string().meta({ format: 'date-time' }));
const count = (description: string) => z.int().min(0).meta({ description });
const text = (description: string) => z.string().meta({ description });
const textOrNull = (description: string) => orNull(description, z.string());
const oneOf = <const T extends string>(description: string, ...values: T[]) => z.enum(values).meta({ description });
const list = <T extends z.ZodType>(description: string, element: T) =>
  z.array(element).readonly().meta({ description });
/** An answer, or a part of one. */
const object = <T extends z.ZodRawShape>(description: string, shape: T) => z.object(shape).meta({ description });
/** A part that /openapi.json describes once, by its name. */
const named = <T extends z.ZodRawShape>(id: string, description: string, shape: T) =>
  z.object(shape).meta({ id, description });

export const ERROR = z
  .object({
    error: z.object({
      code: text(
        `For programs: it stays the same when the message changes. One of ${Object.keys(STATUS_OF).join(', ')}; later versions may have more.`,
      ),
      message: text('What went wrong.'),
      hint: text('What to do.'),
    }),
  })
  .meta({
    id: 'Error',
    description: 'Why a request was not answered.',
    examples: [
      {
        error: {
          code: 'USAGE',
          message: 'limit: "many" is not valid',
          hint: 'Use a whole number from 1 to 1000.',
        },
      },
    ],
  });

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

export const RUN = named('Run', 'One load of the catalog.', {
  id: count('The number of the run.'),
  kind: oneOf('All products, or what changed since the last run.', 'full', 'delta'),
  state: z
    .enum(['planned', 'reading', 'complete', 'held', 'failed', 'cancelled'])
    .meta({ description: '`held`: the run waits for a decision about removals.' }),
  pages: count('Pages applied.'),
  items: count('Items in these pages.'),
  created: count('Products created.'),
  updated: count('Products updated.'),
  removed: count('Products removed.'),
  restored: count('Removed products that the source has again.'),
  missing: count('Living products that a full run did not see.'),
  rejected: count('Items that are not valid products.'),
  requests: count('Requests made to the source.'),
  proof: orNull('`sealed`: the run has seen every product. Null for a delta of one page.', z.enum(['sealed', 'open'])),
  reasons: list('Why the proof is open, one sentence each.', z.string()),
  error: textOrNull('Why the run failed.'),
  emptied: orNull(
    'Of how many products its updates emptied each field; null if they emptied none.',
    z.record(z.string(), z.int()),
  ),
  unusual: orNull(
    'Why it is unusual: it emptied a field of more products than CATCHWORD_LOSS_LIMIT allows. Null if it is not.',
    z.object({
      from: count('The first change that was not delivered yet when the run became unusual.'),
      field: text('A column of the view `catalog`, or `prices`.'),
      products: count('Products whose field the run, and those of the 24 hours before it, emptied.'),
      earlier: count('Of these, what earlier runs emptied; absent: nothing.').optional(),
      living: count('All products then.'),
    }),
  ),
  evidence: orNull('The figures behind the proof. Null until the run ends.', EVIDENCE),
  from_time: timeOrNull("Start of a delta's time range; null for a full run."),
  source_time: timeOrNull("The source's clock when the run began to read."),
  started_at: timeOrNull('When it started.'),
  finished_at: timeOrNull('When it ended.'),
  settles_at: timeOrNull('When it stops waiting and reads its last delta; null if it is not waiting.'),
});

const HOLDER = named('Process', 'A process of catchword.', {
  pid: count('Its process id.'),
  host: text('Its machine.'),
  other_settings: list('Settings that it was not started with as they are now in its `.env`.', z.string()),
});

const MISSED = named('Missed', 'Scheduled times since the newest one that was served.', {
  ticks: count('How many scheduled times; 501 means more than 500.'),
  from: timeOrNull('The first of them.'),
  up_to: timeOrNull('The last of them.'),
  reason: textOrNull('Why no run made up for them, as far as the mirror knows it.'),
});

export const STATUS = object(
  'The state of the mirror, as `catchword status --json` prints it, without `sinks`, `episodes` and `channels`.',
  {
    mirror: text('Path of the mirror.'),
    incarnation: text('Random id of the history of this mirror. Another one means that numbers mean other changes.'),
    bytes: count('Size of the file.'),
    products: count('Products that are not removed.'),
    last_seq: count('The number of the newest change; 0 if there is none.'),
    watermark: timeOrNull('Where the next delta starts.'),
    freshness: oneOf(
      'empty: never complete. stale: older than allowed. clock: as of a time that the clock has not reached.',
      ...FRESHNESS,
    ),
    age_seconds: orNull('Null if it never was, or that is not known.', count('How long ago the mirror was complete.')),
    problems: list('Problems by topic: `runs`, `sink:NAME`.', z.string()),
    blocked_until: timeOrNull('Until when the source asked to wait.'),
    learned_limit: orNull(
      'Null before the first refusal.',
      count('Requests a minute, learned from refusals and used without a configured limit.'),
    ),
    learned_page_size: orNull(
      'Null if it does.',
      count('Products a page, used because the source does not answer pages of the configured size.'),
    ),
    running: orNull('The process that makes a run.', HOLDER),
    daemon: orNull('The daemon or keeper.', HOLDER),
    relay: orNull('The process that feeds the sinks.', HOLDER),
    held: list('Runs that wait for a decision about removals.', z.int()),
    held_runs: list(
      'The same runs, with what they would remove.',
      z.object({
        run: count('The number of the run.'),
        removals: count('How many products it would remove.'),
        reason: textOrNull('Why it waits.'),
      }),
    ),
    last_run: orNull('The newest run.', RUN),
    open_run: orNull(
      'The newest full run, if it could not prove that it saw every product; else null.',
      z.object({
        run: count('The number of the run.'),
        reasons: list('Why, one sentence each.', z.string()),
        rejected: count('Items that it rejected.'),
        missing: count('Products that it did not see and did not remove.'),
      }),
    ),
    source_total: orNull("The source's own total in the newest full run; null if none is known.", z.int()),
    restless_run: orNull(
      'The newest run of the last 26 hours that updated nearly every product; null if none did.',
      z.object({
        run: count('The number of the run.'),
        updated: count('Products that it updated.'),
        field: textOrNull('The field that changed most often, as in `common_change`.'),
      }),
    ),
    next_full: timeOrNull('When the next full run starts. Null if no daemon is alive to start it.'),
    next_delta: timeOrNull('When the next delta starts. Null if no daemon is alive to start it.'),
    next_full_local: timeOrNull('`next_full` by the clock of `timezone`.'),
    next_delta_local: timeOrNull('`next_delta` by the clock of `timezone`.'),
    timezone: text('The zone in which the schedule is read, an IANA name.'),
    missed_full: orNull('Full runs that were scheduled and not made; null if none.', MISSED),
    missed_delta: orNull('The same for deltas.', MISSED),
    next_try: timeOrNull('When a failed run is retried.'),
    retry_reason: textOrNull('Why it failed.'),
  },
);

export const RUNS = list('The newest runs, the newest first.', RUN);

/** Members for columns, by their names. */
function columns<T>(fields: readonly Field[]) {
  const members = fields.map(({ column, about }) => [column, textOrNull(about)]);
  return Object.fromEntries(members) as Readonly<Record<keyof T, ReturnType<typeof textOrNull>>>;
}

const KEY = { vbid: text('The key of the product.') };

const FAILED = count('With `where` or `fields`: how often one failed, which counts as nothing.').exactOptional();

export const HITS = list(
  'Products that match, the best first.',
  z.object({ ...KEY, ...columns<SummaryColumns>(SUMMARY) }),
);

export const PRODUCTS = object('Products as `where` and `fields` yield them, ordered by key.', {
  products: list('Whole; with `fields`, `vbid` and what they yield.', z.looseObject({})),
  next: textOrNull('Pass this as `after` to read on, also after an empty page; null: you have all of them.'),
  position: text('The position in the change log when this page was begun: what changed since comes after it.'),
  failed: FAILED,
  absent: list('Members that `where` and `fields` name, and no product of this page has.', z.string()).exactOptional(),
});

export const MIRRORED_PRODUCT = object('A product of the mirror.', {
  ...KEY,
  ...columns<StoredColumns>(STORED),
  first_seen_at: time('When the mirror first had it.'),
  changed_at: time('When it last changed in the mirror.'),
  changed_seq: count('The number of that change.'),
  removed_at: timeOrNull('When it was removed; null if it was not.'),
  body: orNull('The product exactly as the source sent it; null if it was removed.', PRODUCT),
});

export const CHANGES = object('A page of the change log. When `next` equals `last`, you have all of them.', {
  events: list('The changes, the oldest first.', EVENT),
  next: count('The number of the last change here.'),
  last: count('The number of the newest change.'),
  next_id: text('Pass this as `after` to read on: it also tells whether the mirror was restored from a backup.'),
  failed: FAILED,
});

export const ALIVE = object('The process is alive.', {
  alive: z.literal(true),
  problem: z.string().exactOptional().meta({ description: 'What it waits for, such as a Redis that is full.' }),
});

export const READINESS = z.object({
  ready: z.boolean().meta({ description: 'Whether the mirror may be relied on.' }),
  reason: textOrNull('Why not; null if it may.'),
  open: textOrNull('Why the newest full run could not prove that it saw every product; null if it could.'),
});
