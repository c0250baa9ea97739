import { printable } from '@catchword/base/printable';
import { COLUMNS } from '@catchword/catalog/fields';
import type { Run, Unusual } from '@catchword/catalog/run-types';
import type { RestlessRun } from '../store/rows/recent-runs.ts';
import type { HeldPart } from '../store/rows/removals.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { Store } from '../store/store.ts';
import { reasonText } from './reason-text.ts';
import { approvalText } from './sink-report.ts';
import { count, moment, plural, table, time } from './text.ts';

/** Held products that are listed for a person; `--json` lists all. */
const LISTED = 50;

/** Products or values that are named, and characters of a value. */
const [NAMED, NAMED_CHARS] = [5, 60];

/** The proof of a run and its reasons; no line if it has none. */
export function proofLine(
  { proof, reasons }: Run,
  separator = '\n           ',
  tone = (text: string): string => text,
): string[] {
  const texts = reasons.map((reason) => tone(reasonText(reason)));
  return proof === null ? [] : [`  proof    ${[proof, ...texts].join(separator)}`];
}

/** Says what a run that settles waits for, and until when; null if it does not settle. */
export function settlingText({ settlesAt, missing }: Pick<Run, 'settlesAt' | 'missing'>): string | null {
  if (settlesAt === null) return null;
  const end = moment(settlesAt).slice(11);
  const head = `settling until ${time(settlesAt)}: `;
  if (missing === 0) return `${head}a last delta at ${end} decides whether a product was missed`;
  const unseen = `${plural(missing, 'product')} ${missing === 1 ? 'was' : 'were'} not seen`;
  return `${head}${unseen}; a last delta at ${end} decides`;
}

/** Says in one line why an open full run proves nothing. */
export function openText({ id, reasons, rejected }: Pick<Run, 'id' | 'reasons' | 'rejected'>): string {
  const items = rejected === 0 ? '' : ` (${plural(rejected, 'item')})`;
  return `full run ${id} could not prove that it saw every product: ${reasons.map(reasonText).join('; ')}${items}`;
}

type EmptiedField = Pick<Unusual, 'field' | 'products' | 'living' | 'earlier'> & {
  /** A later full run that is complete and not unusual. */
  readonly usualSince?: number | undefined;
  /** Sinks that wait for an approval of the run. */
  readonly waiting?: readonly SinkRow[];
};

/** Characters of a field's name that are shown. */
const SHOWN = 200;
/** Says that a run updated nearly every product, and what an operator can do about it. */
export function restlessText({ updated, field }: Omit<RestlessRun, 'id'>) {
  const title = `updated nearly every product: ${count(updated)}`;
  if (field === null) return { title, advice: 'Which field changed most often is not known.' };
  const name = printable(field).slice(0, SHOWN);
  const most = `The field ${name} changed most often.`;
  // What stores and shops read is not to be ignored, prices least of all.
  const isRead = [...COLUMNS.map(({ path }) => `/${path.replace('.', '/')}`), '/price', 'prices'].some((one) =>
    field.includes(one),
  );
  const advice = isRead
    ? `${most} Ask the service whether that is meant so, unless the run corrects an earlier one.`
    : `${most} If its changes do not matter, add it to CATCHWORD_IGNORE_FIELDS.`;
  return { title, advice };
}

/** Says which field an unusual run emptied, and what an operator can do about it, with the sinks that wait for that. */
export function unusualText({ field, products, living, earlier, usualSince, waiting = [] }: EmptiedField) {
  const who = earlier === undefined ? 'it' : 'it and the runs of the 24 hours before';
  const title = `is unusual: ${who} emptied ${field} of ${count(products)} of ${plural(living, 'product')}, more than CATCHWORD_LOSS_LIMIT allows`;
  const next =
    usualSince === undefined
      ? 'Check the source, and the settings that say what it sends, such as CATCHWORD_CURRENCY: docs/bad-night.md.'
      : `Run ${usualSince}, which came later, is not unusual: look whether the values are back (npx catchword product VBID).`;
  const advice = `The mirror took the changes, because it is a copy. ${next}`;
  const [first] = waiting;
  const sinks =
    first === undefined
      ? ''
      : ` Waiting for you: ${waiting.map(({ name }) => name).join(', ')}. ${approvalText(first)}.`;
  return { title, advice: `${advice}${sinks}` };
}

/** Says which share of the products a run updated, and of how many it emptied which field; null if it updated none. */
export function updatesText({ updated, evidence, emptied }: Pick<Run, 'updated' | 'evidence' | 'emptied'>) {
  const fields = Object.entries(emptied ?? {}).map(([field, products]) => `${field} of ${plural(products, 'product')}`);
  const texts = fields.length === 0 ? [] : [`emptied ${fields.join(', ')}`];
  if (evidence !== null && updated > 0) {
    texts.unshift(`${Math.round(1e4 * evidence.updatedShare) / 100}% of the products`);
  }
  return texts.join('; ') || null;
}

/** Warns that a run is unusual, or that it updated nearly every product, and no setting says why; null if neither. */
export function warningText({ evidence, unusual, updated }: Run): string | null {
  const field = evidence?.commonChange;
  if (unusual === null && (field === undefined || evidence?.changedSettings !== undefined)) return null;
  const told = unusual === null ? restlessText({ updated, field: field ?? null }) : unusualText(unusual);
  return `It ${Object.values(told).join('. ')}`;
}

/** Says that other settings may be why a run updated products, and which products the list has twice; empty if neither. */
export function noteTexts({ evidence }: Pick<Run, 'evidence'>): string[] {
  const { changedSettings, twice } = evidence ?? {};
  const texts: string[] = [];
  if (changedSettings !== undefined) {
    texts.push(
      `It is the first full load since ${changedSettings}. Products that differ only by that are updated, too.`,
    );
  }
  if (twice !== undefined && twice.products > 0) {
    const keys = twice.vbids.slice(0, Math.min(NAMED, twice.products)).map(printable).join(', ');
    const more = twice.products > NAMED ? ', …' : '';
    const found = `${plural(twice.products, 'product')} twice, with two contents: ${keys}${more}`;
    texts.push(`The list has ${found}. The content that it shows first counts.`);
  }
  return texts;
}

/** Products that are looked at, so that a page can ask every second. */
const SAMPLE = 1_000;

const percent = (part: number, whole: number): string => `${Number(((100 * part) / whole).toPrecision(3))}%`;

function shares(parts: readonly HeldPart[]): string {
  const whole = parts.reduce((sum, [, products]) => sum + products, 0);
  const named = parts.slice(0, NAMED).map(([value, products]) => {
    return `${printable(value ?? 'none').slice(0, NAMED_CHARS)} ${percent(products, whole)}`;
  });
  return [...named, ...(parts.length > NAMED ? ['…'] : [])].join(', ');
}

/** What a proof means for the decision. */
const MEANINGS = {
  sealed:
    'sealed: catchword read the whole list and overlooked nothing. That the list is right is not proven: an account, a filter or a fault of the service may hide living products.',
  open: 'open: the run may have overlooked products. It holds only products that lookups, or several full runs in a row, did not find.',
};

/**
 * What an operator judges held removals by: their share of the catalog, what they have in common, and the proof.
 * @param total how many products the run would remove
 */
export function heldFacts({ removals, products }: Store, { id, proof }: Run, total: number): Record<string, string> {
  if (total === 0) return {};
  const step = Math.ceil(total / SAMPLE);
  const parts = Object.entries(removals.heldBy).map(([name, read]) => [name, shares(read(id, step))] as const);
  const living = Math.max(1, products.living());
  const share = `${percent(total, living)} of ${plural(living, 'product')}`;
  return { 'Share of the catalog': share, ...Object.fromEntries(parts), Proof: MEANINGS[proof ?? 'open'] };
}

/** Lists what a held run would remove, for a person. */
export function heldText(store: Store, run: Run): string {
  const runId = run.id;
  const total = store.removals.heldCount(runId);
  const facts = Object.entries(heldFacts(store, run, total)).map(([name, value]) => `  ${name}: ${value}`);
  const rows = store.removals.held(runId, LISTED).map(({ vbid, title }) => [vbid, title]);
  const rest = total - rows.length;
  return [
    `would remove ${plural(total, 'product')}:`,
    ...facts,
    table(['vbid', 'title'], rows),
    ...(rest > 0 ? [`… and ${count(rest)} more: npx catchword run ${runId} --json`] : []),
    `ask the service about some of them: npx catchword runs check ${runId}`,
    `decide with: npx catchword approve ${runId}, or: npx catchword reject ${runId}`,
  ].join('\n');
}
