import { changedPointers } from './content.ts';
import type { ChangeOp, RunKind } from './run.ts';
import { sourceAddress } from './source.ts';

/** A change with the product as it was right after it. */
export interface RecordedChange {
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly op: ChangeOp;
  readonly vbid: string;
  readonly runId: number;
  readonly cause: RunKind;
  /** Previous values of what changed; of a removal, the last known product; null for a creation. */
  readonly before: string | null;
  readonly added: readonly string[];
  /** The item's JSON text as of `seq`; null when it was removed. */
  readonly body: string | null;
}

/** The `source` of events while the mirror has not noted its own. */
export function configuredSource(baseUrl: string | undefined): string {
  return `${baseUrl === undefined ? '' : sourceAddress(baseUrl)}/v4/products`;
}

const DIGITS = 20;

/** `seq` as events carry it: 20 digits, so that text sorts as numbers do. */
export function sequenceText(seq: number): string {
  return String(seq).padStart(DIGITS, '0');
}

/** JSON of a key. Nearly all are plain digits and letters, which need no escape. */
function quoted(vbid: string): string {
  return /^[\w .:/-]*$/.test(vbid) ? `"${vbid}"` : JSON.stringify(vbid);
}

/** Many changes in a row have the same moment: those of one page. */
let lastAt = Number.NaN;
let lastTime = '';

function timeText(at: number): string {
  if (at !== lastAt) {
    lastTime = new Date(at).toISOString();
    lastAt = at;
  }
  return lastTime;
}

/**
 * One CloudEvents 1.0 event in JSON, without a line break of its own. Bodies are set in as the source sent them, so
 * that no number is rounded on the way.
 * @param incarnation of the mirror
 * @param source the service's `{base_url}/v4/products`
 */
export function eventText(change: RecordedChange, incarnation: string, source: string): string {
  const { seq, op, before } = change;
  const vbid = quoted(change.vbid);
  // A removal changes no field: `before` is the whole product.
  const isWhole = before === null || op === 'removed';
  const changed = isWhole ? '[]' : JSON.stringify(changedPointers({ before, added: change.added }));
  return [
    `{"specversion":"1.0","id":"${incarnation}:${seq}","source":${JSON.stringify(source)}`,
    `,"type":"catchword.product.${op}","subject":${vbid},"time":"${timeText(change.at)}"`,
    `,"datacontenttype":"application/json","sequence":"${sequenceText(seq)}"`,
    `,"data":{"op":"${op}","vbid":${vbid},"product":${oneLine(change.body)},"before":${oneLine(before)}`,
    `,"changed":${changed},"run":${change.runId},"cause":"${change.cause}"}}`,
  ].join('');
}

/** Line breaks of pretty-printed JSON stand between tokens only: inside strings they are escaped. */
function oneLine(json: string | null): string {
  if (json === null) return 'null';
  return json.includes('\n') || json.includes('\r') ? json.replace(/[\r\n]+/g, ' ') : json;
}
