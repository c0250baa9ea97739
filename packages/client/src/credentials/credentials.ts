import { CatchwordError } from '@catchword/base/errors';
import type { Caller, Operation } from '../http/caller.ts';
import { credentialResults } from './results.ts';
import {
  type CredentialResult,
  type CredentialSubmission,
  checkSubmission,
  credentialsXml,
  MAX_CREDENTIALS,
  MAX_KEYS,
  requireList,
  sizeOf,
} from './submission.ts';

/** Statuses that may come with 601 or 603 in the body: the interface (section 7) does not name one. */
const ACCEPTED = [400, 403, 404, 409, 410, 422, 468, 469, 470, 474, 601, 603, 650];

const ACCOUNT_CODES = [474, 601, 603];

/** Verifies a batch from the account number `first`. The refusal of a request for one account is its result. */
async function verifyBatch(
  caller: Caller,
  submissions: readonly CredentialSubmission[],
  first: number,
  signal: AbortSignal,
): Promise<CredentialResult[]> {
  const verify: Operation<CredentialResult[]> = {
    method: 'POST',
    path: '/v3/credentials.xml',
    format: 'xml',
    token: false,
    repeatable: true,
    accepts: ACCEPTED,
    body: credentialsXml(submissions),
    secrets: submissions.flatMap(({ accessToken }) => accessToken ?? []),
    read: (answer) => credentialResults(answer, submissions, first),
  };
  try {
    return await caller.call(verify, signal);
  } catch (error) {
    if (!(error instanceof CatchwordError)) throw error;
    const { code, message, serviceCode = 0 } = error;
    const isOfAccount = ACCOUNT_CODES.includes(serviceCode);
    const [only] = submissions;
    if (submissions.length === 1 && isOfAccount) {
      return [{ ok: false, code: serviceCode, message, reference: only?.reference ?? null, guid: only?.guid ?? null }];
    }
    if (submissions.length === 1 || (code !== 'SERVICE_INVALID' && !isOfAccount)) throw error;
    // The token of this client is not sent, and the answer does not say which user is not known.
    const hint = 'Verify these accounts one at a time: the answer does not say which of them it is about.';
    throw error.with({
      message: `credentials ${first} to ${first + submissions.length - 1}: ${message}`,
      ...(isOfAccount && { code: 'SERVICE_ERROR', hint }),
    });
  }
}

/** @rule 4.3-1..2, 4.3-7 */
export type Submissions = Iterable<string | CredentialSubmission> | AsyncIterable<string | CredentialSubmission>;

export interface BatchOptions {
  /** Accounts that precede the submissions; the positions in errors count from there. Default 0. */
  readonly before?: number;
  /** Accepts keys that are longer than any seen. Default false. */
  readonly unchecked?: boolean;
}

/**
 * Verifies any number of accounts with `POST /v3/credentials.xml` (interface, section 4.3), 10,000 in a request, one request
 * after the other. Holds one batch in memory.
 * @param submissions a string is a reference
 * @returns batches of results in the order of the submissions; a 601, a 603 or an unclear answer is a result
 * @throws CatchwordError USAGE for an invalid submission, before its batch is sent; SERVICE_INVALID for a request that is
 *   refused as a whole (650); SERVICE_ERROR for an empty answer; SOURCE_*; XML_INVALID; INTERRUPTED
 */
export async function* verifyInBatches(
  caller: Caller,
  submissions: Submissions,
  signal: AbortSignal,
  { before = 0, unchecked = false }: BatchOptions = {},
): AsyncGenerator<CredentialResult[], void, undefined> {
  requireList(submissions);
  let batch: CredentialSubmission[] = [];
  let characters = 0;
  let first = before + 1;
  async function send(): Promise<CredentialResult[]> {
    const results = await verifyBatch(caller, batch, first, signal);
    first += batch.length;
    batch = [];
    characters = 0;
    return results;
  }
  for await (const submitted of submissions) {
    const submission = checkSubmission(submitted, `credential ${first + batch.length}`, unchecked);
    const size = sizeOf(submission);
    if (batch.length > 0 && characters + size > MAX_KEYS) yield await send();
    batch.push(submission);
    characters += size;
    if (batch.length === MAX_CREDENTIALS) yield await send();
  }
  if (batch.length > 0) yield await send();
}

/** Verifies as `verifyInBatches` does, but checks every submission before anything is sent. */
export async function verifyCredentials(
  caller: Caller,
  submissions: Submissions,
  signal: AbortSignal,
  unchecked = false,
): Promise<CredentialResult[]> {
  requireList(submissions);
  const checked: CredentialSubmission[] = [];
  for await (const submitted of submissions) {
    checked.push(checkSubmission(submitted, `credential ${checked.length + 1}`, unchecked));
  }
  const results: CredentialResult[] = [];
  for await (const batch of verifyInBatches(caller, checked, signal, { unchecked })) results.push(...batch);
  return results;
}
