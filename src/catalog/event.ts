import { changedPointers } from './content.ts';
import type { ChangeOp, RunKind } from './run.ts';

/** A change with the product as it was right after it. */
export interface RecordedChange {
  readonly seq: number;
  readonly at: number;
  readonly op: ChangeOp;
  readonly vbid: string;
  readonly runId: number;
  readonly cause: RunKind;
  readonly before: string | null;
  readonly added: readonly string[];
  /** The item's JSON text as of `seq`; null when it was removed. */
  readonly body: string | null;
}

/**
 * One CloudEvents 1.0 event in JSON, without a line break of its own. Bodies are set in as the source sent them, so
 * that no number is rounded on the way.
 * @param incarnation of the mirror
 * @param source the service's `{base_url}/v4/products`
 */
export function eventText(change: RecordedChange, incarnation: string, source: string): string {
  const { seq, op, before } = change;
  const head = JSON.stringify({
    specversion: '1.0',
    id: `${incarnation}:${seq}`,
    source,
    type: `catchword.product.${op}`,
    subject: change.vbid,
    time: new Date(change.at).toISOString(),
    datacontenttype: 'application/json',
    sequence: String(seq).padStart(20, '0'),
  });
  const changed = before === null ? [] : changedPointers({ before, added: change.added });
  const product = oneLine(change.body);
  const data = `{"op":"${op}","vbid":${JSON.stringify(change.vbid)},"product":${product},"before":${oneLine(before)},"changed":${JSON.stringify(changed)},"run":${change.runId},"cause":"${change.cause}"}`;
  return `${head.slice(0, -1)},"data":${data}}`;
}

/** Line breaks of pretty-printed JSON stand between tokens only: inside strings they are escaped. */
function oneLine(json: string | null): string {
  return json === null ? 'null' : json.replace(/[\r\n]+/g, ' ');
}
