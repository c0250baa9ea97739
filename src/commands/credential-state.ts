import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { CredentialSubmission } from '../client/operations/credential.ts';

/** What is submitted, as it grows. */
export interface SubmittedDigest {
  add(submission: CredentialSubmission): void;
  /** Accounts so far. */
  readonly count: () => number;
  /** SHA-256 of all so far, in hexadecimal: their number, order and content. */
  readonly digest: () => string;
}

export function digestOfSubmitted(): SubmittedDigest {
  const hash = createHash('sha256');
  let count = 0;
  return {
    add: ({ reference, guid, accessToken }) => {
      count++;
      hash.update(`${JSON.stringify([reference ?? null, guid ?? null, accessToken ?? null])}\n`);
    },
    count: () => count,
    digest: () => hash.copy().digest('hex'),
  };
}

/** By how many accounts were submitted, the digest of these. */
export type States = ReadonlyMap<number, string>;

const LINE = /^(\d+) ([0-9a-f]{64})$/;

/** A line that a crash cut short is none. */
export async function readStates(file: FileHandle): Promise<States> {
  const { size } = await file.stat();
  const bytes = Buffer.alloc(size);
  const { bytesRead } = await file.read(bytes, 0, size, 0);
  const lines = bytes.toString('latin1', 0, bytesRead).split('\n').slice(0, -1);
  return new Map(
    lines.flatMap((line): [number, string][] => {
      const [, count, digest] = LINE.exec(line) ?? [];
      return count === undefined || digest === undefined ? [] : [[Number(count), digest]];
    }),
  );
}

export function stateLine({ count, digest }: SubmittedDigest): string {
  return `${count()} ${digest()}\n`;
}

/** Lines up to an account, in their order. */
export function stateLines(states: States, done: number): string {
  return [...states].flatMap(([count, digest]) => (count <= done ? [`${count} ${digest}\n`] : [])).join('');
}
