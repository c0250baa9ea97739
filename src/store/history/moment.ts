import { CatchwordError, usageError } from '@catchword/base/errors';
import { iso, parseIsoTime } from '@catchword/base/iso-time';
import type { Reader } from '../schema/reader.ts';
import { pruned, requireKnownSeq } from './history.ts';

/** A state of the mirror: right after the change of this number, or at a time, milliseconds since 1970. */
export type Moment = { readonly seq: number } | { readonly ms: number };

/**
 * Parses the number of a change, or a time in UTC unless it names a zone.
 * @param nowMs a later time is an error: the mirror knows nothing of it; milliseconds since 1970
 * @throws CatchwordError USAGE
 */
export function parseMoment(name: string, text: string, nowMs: number): Moment {
  const seq = /^\d{1,15}$/.test(text) ? Number(text) : null;
  if (seq !== null) return { seq };
  const ms = parseIsoTime(text);
  if (ms !== null && ms <= nowMs) return { ms };
  const wrong = ms === null ? 'is neither the number of a change nor a time' : 'is in the future';
  throw usageError(
    `${name}: ${JSON.stringify(text)} ${wrong}`,
    'Use a number, a date such as 2026-11-20 (its midnight, in UTC), or a time such as 2026-11-20T02:00:00Z.',
  );
}

/**
 * The newest change at a moment; 0 only for the number 0.
 * @throws CatchwordError USAGE for a number beyond the newest, NOT_FOUND for a time before the first change that the log holds
 */
export function seqOf(store: Reader, name: string, moment: Moment, hint?: string): number {
  const { changes } = store;
  if ('seq' in moment) return requireKnownSeq(name, moment.seq, changes.lastSeq(), hint);
  const seq = changes.seqAt(moment.ms + 1);
  if (seq > 0) return seq;
  if (changes.prunedTo() > 0) throw pruned(store, 'the mirror', `${iso(moment.ms)}`);
  const [first] = changes.after(0, 1);
  const begins = first === undefined ? 'it has no change yet' : `its first change is of ${iso(first.at)}`;
  throw new CatchwordError('NOT_FOUND', `${name}: the mirror did not exist at ${iso(moment.ms)}: ${begins}`, {
    hint: hint ?? 'Use a later time, or the number of a change.',
  });
}
