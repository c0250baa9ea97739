import { changedPointers } from './content.ts';
import type { ChangeOp, RunKind } from './run-types.ts';
import { sourceAddress } from './source-identity.ts';

/** A change from the log, with the product right after the change. */
export interface RecordedChange {
  readonly seq: number;
  /** Id of the era in which it was recorded, see `eras` in store/schema.ts. */
  readonly era: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly op: ChangeOp;
  readonly vbid: string;
  readonly runId: number;
  readonly cause: RunKind;
  /** Previous values of the changed fields; for a removal, the last known product; null for a creation. */
  readonly before: string | null;
  readonly added: readonly string[];
  /** The item's JSON text as of `seq`; null if it was removed. */
  readonly body: string | null;
  /** Of a reader with a view: names what the event says of the change, in the event's id. */
  readonly tag?: string;
  /** Of a reader with a view: whether the product began or ceased to match, though it is there before and after. */
  readonly view?: 'entered' | 'left' | undefined;
}

/** Which events some texts are of, in order. */
export interface EventSpan {
  readonly events: number;
  /** Numbers and ids of the first and the last change. */
  readonly first: number;
  readonly last: number;
  readonly firstId: string;
  readonly lastId: string;
}

/** The `source` of events while the mirror has not noted its own. */
export function configuredSource(baseUrl: string | undefined): string {
  return `${baseUrl === undefined ? '' : sourceAddress(baseUrl)}/v4/products`;
}

/**
 * The id of a change, which names one change for ever. After a mirror is restored from a backup, changes get the same numbers
 * again, but another era. Readers outside compare ids and do not parse them; `findPosition` in log-position.ts does.
 */
export function eventId(incarnation: string, { era, seq, tag }: Pick<RecordedChange, 'era' | 'seq' | 'tag'>): string {
  return `${idStart(incarnation, tag === undefined ? era : `${era}.${tag}`)}${seq}`;
}

/** What the ids of an era start with: the number of the change follows. */
export function idStart(incarnation: string, era: string): string {
  return `${incarnation}_${era}:`;
}

/** The incarnation in an id that `eventId` made, or in the id of the position before all changes, which has no era. */
export function incarnationOf(id: string): string {
  return id.replace(/(?:_[^_:]*)?:[^:]*$/, '');
}

/** `seq` padded to 20 digits, so that sorting as text sorts by number. */
export function sequenceText(seq: number): string {
  return String(seq).padStart(20, '0');
}

/** Replaces line breaks, which JSON allows only between tokens: inside strings they are escaped. */
export function oneLine(json: string | null): string {
  if (json === null) return 'null';
  // Nearly no body has one, and searching takes a fraction of replacing.
  return json.includes('\n') || json.includes('\r') ? json.replace(/[\r\n]+/g, ' ') : json;
}

/** The last time, because all changes of a page have the same one, and formatting takes as long as the rest of an event. */
let last = { at: Number.NaN, text: '' };

export function timeText(at: number): string {
  if (at !== last.at) last = { at, text: new Date(at).toISOString() };
  return last.text;
}

/** A CloudEvents 1.0 event as a line of JSON, with the bodies as sent. @param source `{base_url}/v4/products` */
export function eventText(change: RecordedChange, incarnation: string, source: string): string {
  const { seq, op, before } = change;
  const vbid = JSON.stringify(change.vbid);
  const time = timeText(change.at);
  // `before` of a removal is the whole product; no field changed.
  const isWhole = before === null || op === 'removed';
  const changed = isWhole ? '[]' : JSON.stringify(changedPointers({ before, added: change.added }));
  return [
    `{"specversion":"1.0","id":"${eventId(incarnation, change)}","source":${JSON.stringify(source)}`,
    `,"type":"catchword.product.${op}","subject":${vbid},"time":"${time}"`,
    `,"datacontenttype":"application/json","sequence":"${sequenceText(seq)}"`,
    `,"data":{"op":"${op}","vbid":${vbid},"product":${oneLine(change.body)},"before":${oneLine(before)}`,
    `,"changed":${changed},"run":${change.runId},"cause":"${change.cause}"`,
    change.view === undefined ? '}}' : `,"view":"${change.view}"}}`,
  ].join('');
}
