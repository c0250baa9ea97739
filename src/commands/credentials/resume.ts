import { createReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { z } from 'zod';
import {
  type CredentialResult,
  type CredentialSubmission,
  MAX_CREDENTIALS,
} from '../../client/credentials/submission.ts';
import { CatchwordError } from '../../errors.ts';
import { digestOfSubmitted, type States, type SubmittedDigest } from '../credential-state.ts';
import { csvFields, cutRecords, type FileRecord } from './csv.ts';
import type { Submitted } from './input.ts';
import { HEADER, type ResultFormat } from './output.ts';

/** What an earlier run wrote, and what of the input is still to do. */
export interface Resumed {
  /** Results that are kept. */
  readonly done: number;
  /** Bytes that are kept. */
  readonly bytes: number;
  /** Submissions read already whose results are not kept. */
  readonly open: readonly Submitted[];
  /** Of what the results that are kept are about. */
  readonly kept: SubmittedDigest;
}

/** An earlier run's results. */
export interface Earlier {
  readonly path: string;
  readonly format: ResultFormat;
  /** What that run noted of its input. */
  readonly states: States;
  /** Path of these notes. */
  readonly statePath: string;
}

function notOurs(path: string, line: number, what: string): CatchwordError {
  return new CatchwordError('USAGE', `${path} line ${line}: ${what}`, {
    hint: 'Results of something else are not overwritten: name another file with --out, or begin anew with --restart.',
  });
}

/** Of every result. */
const BEGINNING = { csv: '', ndjson: '{"ok":' } as const;

/** More than what any results begin with, and the byte order mark that another program may have put before it. */
const HEAD_BYTES = 2 * HEADER.length;

/**
 * Results begin as this command begins them, in either format; a crash may have cut that short.
 * @throws CatchwordError USAGE where the file begins with something else, which is not thrown away by --restart either
 */
export async function checkBeginning(path: string, file: FileHandle): Promise<void> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
  const text = buffer.toString('utf8', 0, bytesRead).replace(/^\ufeff/, '');
  const [first = '', ...more] = text.split(/\r?\n/);
  const head = HEADER.trimEnd();
  const isTorn = more.length === 0 && [head, BEGINNING.ndjson].some((beginning) => beginning.startsWith(first));
  if (isTorn || first === head || first.startsWith(BEGINNING.ndjson)) return;
  throw new CatchwordError('USAGE', `${path} line 1: it is no result of this command`, {
    hint: 'What is something else is not overwritten: name another file with --out.',
  });
}

/** What a crash left of a line may be thrown away, and nothing else. */
function checkTorn(path: string, { line, text }: FileRecord, whole: string): void {
  if (whole.startsWith(text) || text.startsWith(whole)) return;
  throw notOurs(path, line, 'it is no result of this command');
}

const KEYS = z.object({ reference: z.string().nullable(), guid: z.string().nullable() });

function keysOf(path: string, record: FileRecord, format: ResultFormat): Pick<CredentialResult, 'reference' | 'guid'> {
  try {
    if (format === 'ndjson') return KEYS.parse(JSON.parse(record.text));
    const [reference = '', guid = ''] = csvFields(record);
    return { reference: reference || null, guid: guid || null };
  } catch {
    throw notOurs(path, record.line, 'it is no result of this command');
  }
}

function fits(kept: Pick<CredentialResult, 'reference' | 'guid'>, { reference, guid }: CredentialSubmission): boolean {
  const isSame = (a: string | undefined, b: string | null): boolean => a === undefined || b === null || a === b;
  return isSame(reference, kept.reference) && isSame(guid, kept.guid);
}

/** @throws CatchwordError USAGE where the results are about other accounts than the input's first */
function checkState({ path, states, statePath }: Earlier, line: number, read: SubmittedDigest): void {
  const state = states.get(read.count());
  if (state === undefined) throw notOurs(path, line, `${statePath} does not say which input it is about`);
  if (state.submitted !== read.digest()) {
    throw notOurs(path, line, 'it is about another input, or the input was changed since');
  }
}

/** Where nothing of an earlier run is kept. */
export function noneDone(): Resumed {
  return { done: 0, bytes: 0, open: [], kept: digestOfSubmitted() };
}

function digestOf(submitted: readonly Submitted[], digest: SubmittedDigest): SubmittedDigest {
  for (const { submission } of submitted) digest.add(submission);
  return digest;
}

/**
 * Reads an earlier run's file and the input side by side. What is kept ends with a whole batch, or with the input.
 * @throws CatchwordError USAGE where the file is not the beginning of this input's results
 */
export async function resume(earlier: Earlier, input: AsyncIterator<Submitted>): Promise<Resumed> {
  const { path, format, states } = earlier;
  let [done, bytes, headed, last, line] = [0, 0, format === 'ndjson', 0, 1];
  let pending: Submitted[] = [];
  const kept = digestOfSubmitted();
  for await (const record of cutRecords(createReadStream(path), format === 'csv', true)) {
    if (!record.whole) {
      checkTorn(path, record, headed ? BEGINNING[format] : HEADER);
      break;
    }
    [last, line] = [record.end, record.line];
    if (!headed) {
      if (`${record.text}\n` !== HEADER) throw notOurs(path, 1, 'it is no result of this command');
      [headed, bytes] = [true, record.end];
      continue;
    }
    const next = await input.next();
    if (next.done === true) throw notOurs(path, line, 'it goes on where the input ends');
    if (!fits(keysOf(path, record, format), next.value.submission)) {
      throw notOurs(path, line, 'it is about another account than the input at this place');
    }
    pending.push(next.value);
    if (pending.length < MAX_CREDENTIALS) continue;
    checkState(earlier, line, digestOf(pending, kept));
    [done, bytes, pending] = [kept.count(), record.end, []];
  }
  if (pending.length === 0) return { done, bytes, open: [], kept };
  const next = await input.next();
  const all = digestOf(pending, kept.copy());
  // An earlier run that ended here noted it; a batch that a crash cut short has no note, and is done again.
  if (next.done === true || states.has(all.count())) checkState(earlier, line, all);
  if (next.done !== true) return { done, bytes, open: [...pending, next.value], kept };
  return { done: all.count(), bytes: last, open: [], kept: all };
}
