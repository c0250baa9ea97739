import { excerpt } from '../report/product-text.ts';
import { count } from '../report/text.ts';
import type { ListedChange } from '../store/rows/changes.ts';
import type { Row, Said } from './shown-row.ts';

/* Programs get changes as events: src/events/event-schema.ts declares them. */

/** Names of changed fields that are shown of one change, and characters of each. */
const [MOST_FIELDS, FIELD_CHARS] = [12, 60];
/** Characters of a title in a list. */
const TITLE_CHARS = 120;

/** The page of a product, right after a change if `at` is given. */
export function productPath(vbid: string, at?: number): string {
  return `/products/${encodeURIComponent(vbid)}${at === undefined ? '' : `?at=${at}`}`;
}

/** A product by its title, or by its key if it has none, as it was after a change. */
export function productSaid({ vbid, title, seq }: Pick<ListedChange, 'vbid' | 'title' | 'seq'>): Said {
  const name = title ?? vbid;
  return { text: excerpt(name, 0, Math.min(TITLE_CHARS, name.length)), href: productPath(vbid, seq) };
}

function fieldsText({ op, fields }: Pick<ListedChange, 'op' | 'fields'>): string {
  if (fields === null) return 'many or long ones: see the product';
  if (fields.length === 0) return op === 'updated' || op === 'restored' ? 'none' : 'the whole product';
  const rest = fields.length - MOST_FIELDS;
  const names = fields.slice(0, MOST_FIELDS).map((name) => excerpt(name, 0, Math.min(FIELD_CHARS, name.length)));
  return `${names.join(', ')}${rest > 0 ? ` and ${count(rest)} more` : ''}`;
}

type Recorded = Pick<ListedChange, 'seq' | 'op' | 'at' | 'runId'>;

// biome-ignore format: a row is a line.
const [SEQ, OP, AT, RUN_OF] = [
  { key: 'seq', label: 'Change', list: 'column', about: 'The number of the change.', value: ({ seq }) => seq },
  { key: 'op', label: 'What', list: 'column', about: '`created`, `updated`, `removed` or `restored`.', value: ({ op }) => op },
  { key: 'at', label: 'When', list: 'column', about: 'When it was recorded.', value: ({ at }) => at, text: ({ at }) => ({ at }) },
  { key: 'run', label: 'Run', list: 'column', about: 'The run that recorded it.', value: ({ runId }) => runId, text: ({ runId }) => ({ text: `run ${runId}`, href: `/runs/${runId}` }) },
] as const satisfies readonly Row<Recorded>[];

/** What is known of a change wherever it is listed. */
export const RECORDED: readonly Row<Recorded>[] = [SEQ, OP, AT, RUN_OF];

// biome-ignore format: a row is a line.
/** A change in the log. */
export const CHANGE = [
  SEQ,
  OP,
  { key: 'product', label: 'Product', list: 'column', about: 'The product, as it was right after the change.', value: ({ vbid }) => vbid, text: productSaid },
  { key: 'fields', label: 'Fields', list: 'column', about: 'Names of the fields that changed.', value: ({ fields }) => fields, text: fieldsText },
  AT,
  RUN_OF,
] as const satisfies readonly Row<ListedChange>[];
