import { CatchwordError } from '../../errors.ts';
import type { Caller } from '../http/caller.ts';
import type { Operation } from '../http/operation.ts';
import { credentialResults } from './results.ts';
import {
  type CredentialResult,
  type CredentialSubmission,
  checkSubmission,
  credentialsXml,
  MAX_CREDENTIALS,
  requireList,
} from './submission.ts';

/** Which status carries 601 and 603 is not shown (interface, section 7), so the body is read at each of these. */
const ACCEPTED = [400, 403, 404, 409, 410, 422, 468, 469, 470, 474, 601, 603, 650];

/** Codes that are about an account and not about the request. */
const OF_ACCOUNTS = [474, 601, 603];

/** Of many requests, which one was refused. */
function placed(error: CatchwordError, first: number, last: number): CatchwordError {
  const { code, hint = '', status, serviceCode } = error;
  if (code !== 'SERVICE_INVALID' || first === last) return error;
  return new CatchwordError(code, `credentials ${first} to ${last}: ${error.message}`, { hint, status, serviceCode });
}

/** A refusal of a request for one account is that account's result. */
function asResult(error: unknown, submissions: readonly CredentialSubmission[], first: number): CredentialResult[] {
  const [only] = submissions;
  if (!(error instanceof CatchwordError)) throw error;
  const isResult = OF_ACCOUNTS.includes(error.serviceCode ?? 0);
  if (!isResult || only === undefined || submissions.length > 1)
    throw placed(error, first, first + submissions.length - 1);
  const about = { reference: only.reference ?? null, guid: only.guid ?? null };
  return [{ ok: false, code: error.serviceCode ?? null, message: error.message, ...about }];
}

interface Batch {
  readonly submissions: readonly CredentialSubmission[];
  /** Position of the first submission, from 1. */
  readonly first: number;
}

const VERIFY: Operation<Batch, CredentialResult[]> = {
  method: 'POST',
  path: '/v3/credentials.xml',
  format: 'xml',
  token: false,
  repeatable: true,
  accepts: ACCEPTED,
  request: ({ submissions }) => ({
    body: credentialsXml(submissions),
    secrets: submissions.flatMap(({ accessToken }) => accessToken ?? []),
  }),
  read: (answer, { submissions, first }) => credentialResults(answer, submissions, first),
};

async function verifyBatch(caller: Caller, batch: Batch, signal: AbortSignal): Promise<CredentialResult[]> {
  try {
    return await caller.call(VERIFY, batch, signal);
  } catch (error) {
    return asResult(error, batch.submissions, batch.first);
  }
}

export type Submissions = Iterable<string | CredentialSubmission> | AsyncIterable<string | CredentialSubmission>;

/**
 * `POST /v3/credentials.xml` (interface, section 4.3) for any number of accounts: as few requests as may be, 10,000
 * accounts each, one after the other. Holds one batch at a time, whatever the length of the source.
 *
 * @param submissions a string is a reference
 * @param before accounts that were verified earlier and are no part of `submissions`; errors count from there
 * @returns batches of results, each in the order of what was submitted; a 601 or 603 is a result and no
 *   exception, and so is an account that cannot be told to be answered for
 * @throws CatchwordError USAGE naming the position of what may not be submitted, before its batch is sent; SOURCE_*;
 *   SERVICE_INVALID for a request that is refused as a whole (650), naming the accounts in it; SERVICE_ERROR for one that is
 *   answered with nothing; XML_INVALID; INTERRUPTED
 */
export async function* verifyInBatches(
  caller: Caller,
  submissions: Submissions,
  signal: AbortSignal,
  before = 0,
): AsyncGenerator<CredentialResult[], void, undefined> {
  requireList(submissions);
  let batch: CredentialSubmission[] = [];
  let position = before;
  for await (const submitted of submissions) {
    batch.push(checkSubmission(submitted, ++position));
    if (batch.length < MAX_CREDENTIALS) continue;
    yield await verifyBatch(caller, { submissions: batch, first: position - batch.length + 1 }, signal);
    batch = [];
  }
  if (batch.length > 0)
    yield await verifyBatch(caller, { submissions: batch, first: position - batch.length + 1 }, signal);
}

/** As `verifyInBatches`, result by result. */
export async function* verifyEach(
  caller: Caller,
  submissions: Submissions,
  signal: AbortSignal,
): AsyncGenerator<CredentialResult, void, undefined> {
  for await (const results of verifyInBatches(caller, submissions, signal)) yield* results;
}

/**
 * As `verifyInBatches`, all at once; what may not be submitted is refused before anything is sent.
 * @returns one result for each submission, in their order
 */
export async function verifyCredentials(
  caller: Caller,
  submissions: Submissions,
  signal: AbortSignal,
): Promise<CredentialResult[]> {
  requireList(submissions);
  const checked: CredentialSubmission[] = [];
  for await (const submitted of submissions) checked.push(checkSubmission(submitted, checked.length + 1));
  const results: CredentialResult[] = [];
  for await (const batch of verifyInBatches(caller, checked, signal)) results.push(...batch);
  return results;
}
