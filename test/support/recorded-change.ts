import type { RecordedChange } from '@catchword/catalog/event';

type Known = Pick<RecordedChange, 'seq' | 'at' | 'op' | 'vbid'>;

/** A change as the log would give it to a sink, of a full run. */
export function recordedChange({ seq, at, op, vbid }: Known, body: string | null = null): RecordedChange {
  return { seq, at, op, vbid, runId: 1, cause: 'full', era: '0123456789ab', before: null, added: [], body };
}
