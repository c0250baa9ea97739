import { CatchwordError } from '../../errors.ts';
import { isWritable, writeXml } from '../../xml/write.ts';

/**
 * One account to verify (interface, sections 2.4 and 4.3). A reference user is named by its reference, by its access token
 * or by both; a full user by its access token or its guid. Email and password are never submitted.
 */
export type CredentialSubmission =
  | { readonly reference: string; readonly accessToken?: string | undefined; readonly guid?: string | undefined }
  | { readonly accessToken: string; readonly guid?: string | undefined; readonly reference?: undefined }
  | { readonly guid: string; readonly accessToken?: undefined; readonly reference?: undefined };

/** The account is there, and this is its valid access token. What the service leaves empty is null. */
export interface VerifiedCredential {
  readonly ok: true;
  /** As answered; as submitted where that is empty, or where it was found by another spelling. */
  readonly reference: string | null;
  readonly guid: string | null;
  readonly accessToken: string;
  readonly email: string | null;
  /** Attributes that the interface does not name. */
  readonly others: Readonly<Record<string, string>>;
}

/**
 * The account could not be verified: 601 the access token is no longer valid, 603 the reference does not exist, or another
 * code; null where the service gave none, or did not make clear which account it answered for, if for this one at all.
 */
export interface RefusedCredential {
  readonly ok: false;
  readonly code: number | null;
  readonly message: string;
  readonly reference: string | null;
  readonly guid: string | null;
}

export type CredentialResult = VerifiedCredential | RefusedCredential;

/** The interface, section 8. */
export const MAX_CREDENTIALS = 10_000;

const ATTRIBUTES = { reference: 'reference', guid: 'guid', accessToken: 'access-token' } as const;

/** Which account, for an error; a token is not repeated. */
export function nameOf({ reference, guid }: CredentialSubmission, position: number): string {
  const name = reference !== undefined ? `reference ${JSON.stringify(reference)}` : `guid ${JSON.stringify(guid)}`;
  return reference === undefined && guid === undefined ? `the access token at position ${position}` : name;
}

/**
 * Characters of a reference, guid or access token. The columns of services hold no longer ones, and ten thousand of them are
 * answered with less than src/xml/gate.ts takes.
 */
const MAX_KEY = 255;

const HINT = 'Submit a reference, a guid or an access token for each account; never an email or a password.';

function wrong(position: number, what: string, hint = HINT): CatchwordError {
  return new CatchwordError('USAGE', `credential ${position}: ${what}`, { hint });
}

function checkValue(name: string, value: unknown, position: number): void {
  if (!Object.hasOwn(ATTRIBUTES, name)) throw wrong(position, `${JSON.stringify(name)} is not submitted`);
  if (typeof value !== 'string') throw wrong(position, `its ${name} is no text`, 'Put it in quotes, numbers as well.');
  if (value.trim() === '') throw wrong(position, `its ${name} is empty`);
  if (value.length > MAX_KEY) {
    const hint = `At most ${MAX_KEY} are taken: leave this account out; in a file, look for a quote at a wrong place.`;
    throw wrong(position, `its ${name} has ${value.length} characters`, hint);
  }
  if (isWritable(value)) return;
  const hint = 'Remove it: control characters, and halves of characters, cannot be sent.';
  throw wrong(position, `its ${name} holds a character that XML cannot hold`, hint);
}

/**
 * A text could be taken apart, too, but its letters are no references.
 * @throws CatchwordError USAGE
 */
export function requireList(submissions: unknown): void {
  const isObject = typeof submissions === 'object' && submissions !== null;
  if (isObject && (Symbol.iterator in submissions || Symbol.asyncIterator in submissions)) return;
  throw new CatchwordError('USAGE', 'the credentials are no list', {
    hint: 'Give an array of references or of objects; for one account, an array of one.',
  });
}

/**
 * Keeps the submission matrix of section 4.3 before anything is sent.
 * @param submitted a string is a reference
 * @param position from 1, for the error
 * @throws CatchwordError USAGE
 */
export function checkSubmission(submitted: string | CredentialSubmission, position: number): CredentialSubmission {
  if (typeof submitted !== 'string' && (typeof submitted !== 'object' || submitted === null)) {
    throw wrong(position, 'it is neither a text nor an object');
  }
  const submission = typeof submitted === 'string' ? { reference: submitted } : submitted;
  const given = Object.entries(submission).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) checkValue(name, value, position);
  if (given.length === 0) throw wrong(position, 'it names no account');
  return submission;
}

/**
 * The body of `POST /v3/credentials.xml`.
 * @throws CatchwordError USAGE where a value holds what XML cannot hold
 */
export function credentialsXml(submissions: readonly CredentialSubmission[]): string {
  return writeXml({
    name: 'credentials',
    content: submissions.map(({ reference, guid, accessToken }) => ({
      name: 'credential',
      attributes: {
        [ATTRIBUTES.reference]: reference,
        [ATTRIBUTES.guid]: guid,
        [ATTRIBUTES.accessToken]: accessToken,
      },
    })),
  });
}
