import { usageError } from '../../base/errors.ts';
import { parseIsoTime } from '../../base/iso-time.ts';
import type { Reader } from '../schema/reader.ts';
import { requireKnownSeq } from './history.ts';

/** A state of the mirror: right after the change of this number, or at a time, milliseconds since 1970. */
export type Moment = { readonly seq: number } | { readonly ms: number };

/** Parses the number of a change, or a time in UTC unless it names a zone. @throws CatchwordError USAGE */
export function parseMoment(name: string, text: string): Moment {
  const seq = /^\d{1,15}$/.test(text) ? Number(text) : null;
  if (seq !== null) return { seq };
  const ms = parseIsoTime(text);
  if (ms !== null) return { ms };
  throw usageError(
    `${name}: ${JSON.stringify(text)} is neither the number of a change nor a time`,
    'Use a number, or ISO 8601, such as 2026-11-20T02:00:00Z.',
  );
}

/** The newest change at a moment; 0 before the first one. @throws CatchwordError USAGE for a number beyond the newest */
export function seqOf({ changes }: Reader, name: string, moment: Moment, hint?: string): number {
  if ('seq' in moment) return requireKnownSeq(name, moment.seq, changes.lastSeq(), hint);
  return changes.seqAt(moment.ms + 1);
}
