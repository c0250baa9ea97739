import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { CredentialSubmission } from '../client/credentials/submission.ts';
import { CatchwordError } from '../errors.ts';

/*
 * What results are about, in digests: the accounts that were submitted, and where. Results name neither the service nor
 * accounts that were submitted by token.
 */

/** What is submitted, as it grows. */
export interface SubmittedDigest {
  add(submission: CredentialSubmission): void;
  /** Accounts so far. */
  readonly count: () => number;
  /** SHA-256 of all so far, in hexadecimal: their number, order and content. */
  readonly digest: () => string;
  /** One that grows apart from this one. */
  readonly copy: () => SubmittedDigest;
}

export function digestOfSubmitted(hash = createHash('sha256'), before = 0): SubmittedDigest {
  let count = before;
  return {
    add: ({ reference, guid, accessToken }) => {
      count++;
      hash.update(`${JSON.stringify([reference ?? null, guid ?? null, accessToken ?? null])}\n`);
    },
    count: () => count,
    digest: () => hash.copy().digest('hex'),
    copy: () => digestOfSubmitted(hash.copy(), count),
  };
}

/** Who is asked: the same reference is another account at another service, or for another key. */
export interface AskedService {
  readonly baseUrl: string;
  readonly apiKey: string;
}

/** SHA-256 of both, in hexadecimal: neither can be read from it. */
export function digestOfService({ baseUrl, apiKey }: AskedService): string {
  return createHash('sha256')
    .update(JSON.stringify([new URL(baseUrl).href, apiKey]))
    .digest('hex');
}

export interface State {
  readonly submitted: string;
  readonly service: string;
}

/** By how many accounts were submitted. */
export type States = ReadonlyMap<number, State>;

const LINE = /^(\d+) ([0-9a-f]{64}) ([0-9a-f]{64})$/;
/** As a crash leaves the last. */
const TORN = /^\d*( [0-9a-f]{0,64}){0,2}$/;

/** @throws CatchwordError USAGE where the file was not written by this command */
export async function readStates(path: string, file: FileHandle): Promise<States> {
  const lines = (await file.readFile('latin1')).split('\n');
  const torn = lines.pop() ?? '';
  const read = lines.map((line) => LINE.exec(line));
  if (read.includes(null) || !TORN.test(torn)) {
    throw new CatchwordError('USAGE', `${path} is in the way: this command writes a file of that name`, {
      hint: 'Move it away, or name another file with --out.',
    });
  }
  return new Map(
    read.map((found) => {
      const [, count, submitted = '', service = ''] = found ?? [];
      return [Number(count), { submitted, service }];
    }),
  );
}

function lineOf(count: number, { submitted, service }: State): string {
  return `${count} ${submitted} ${service}\n`;
}

export function stateLine({ count, digest }: SubmittedDigest, service: string): string {
  return lineOf(count(), { submitted: digest(), service });
}

/** Lines up to an account, in their order. */
export function stateLines(states: States, done: number): string {
  return [...states].flatMap(([count, state]) => (count <= done ? [lineOf(count, state)] : [])).join('');
}
