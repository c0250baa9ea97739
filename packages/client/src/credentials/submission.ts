import { CatchwordError } from '@catchword/base/errors';
import { isWritable, writeXml } from '@catchword/xml/write';

/**
 * One account to verify (interface, sections 2.4 and 4.3): a reference user by its reference, its access token or both, a full
 * user by its access token or its guid. Email and password are never submitted.
 * @rule 2.4-3, 4.3-3, 4.3-5..6, 4.3-9, 8-1
 */
export type CredentialSubmission =
  | { readonly reference: string; readonly accessToken?: string | undefined; readonly guid?: string | undefined }
  | { readonly accessToken: string; readonly guid?: string | undefined; readonly reference?: undefined }
  | { readonly guid: string; readonly accessToken?: undefined; readonly reference?: undefined };

/** The account exists, and this is its valid access token. A field that the service leaves empty is null. */
export interface VerifiedCredential {
  readonly ok: true;
  /** From the answer; from the submission if the answer has none. */
  readonly reference: string | null;
  readonly guid: string | null;
  readonly accessToken: string;
  readonly email: string | null;
  /** Attributes that the interface does not name. */
  readonly others: Readonly<Record<string, string>>;
}

export interface RefusedCredential {
  readonly ok: false;
  /**
   * 601: the access token is not valid any more; 603: the reference does not exist; or another code of the service. Null if the
   * service gave none, or if its answer does not show which account it is about.
   */
  readonly code: number | null;
  readonly message: string;
  readonly reference: string | null;
  readonly guid: string | null;
}

export type CredentialResult = VerifiedCredential | RefusedCredential;

/** The most credentials in one request (interface, section 8). */
export const MAX_CREDENTIALS = 10_000;

/** What an account can be submitted by. */
export const KEYS = ['reference', 'guid', 'accessToken'] as const;

/** Characters of a key, unless the service is to judge it. A longer one usually comes from a file with an open quote. */
const MAX_KEY = 255;
/** Characters of a key at most. For safety: packages/xml/src/read.ts rejects an answer with a longer tag. */
const MAX_UNCHECKED_KEY = 16_384;
/** Characters of the keys in one request. For safety: packages/xml/src/read.ts rejects an answer of more than about twice as many. */
export const MAX_KEYS = 2_600_000;

const HINT = 'Submit a reference, a guid or an access token for each account; never an email or a password.';

function faultOf(name: string, value: unknown, unchecked: boolean): readonly [string, string?] | undefined {
  if (!KEYS.some((key) => key === name)) return [`${JSON.stringify(name)} cannot be submitted`];
  if (typeof value !== 'string') return [`its ${name} is not a string`, 'Put it in quotes, even if it is a number.'];
  if (value.trim() === '') return [`its ${name} is empty`];
  if (value.length > (unchecked ? MAX_UNCHECKED_KEY : MAX_KEY)) {
    const otherwise = unchecked
      ? 'Shorten it, or omit the account'
      : 'To send it all the same, use unchecked (--force)';
    const hint = `In a file, look for a quote that is not closed. ${otherwise}.`;
    return [`its ${name} has ${value.length} characters`, hint];
  }
  if (isWritable(value)) return undefined;
  return [`its ${name} contains a character that XML cannot hold`, 'Remove control characters and lone surrogates.'];
}

/** Rejects a string, whose letters could be iterated as references. @throws CatchwordError USAGE */
export function requireList(submissions: unknown): void {
  const isObject = typeof submissions === 'object' && submissions !== null;
  if (isObject && (Symbol.iterator in submissions || Symbol.asyncIterator in submissions)) return;
  throw new CatchwordError('USAGE', 'the credentials are not a list', {
    hint: 'Pass an array of references or objects; for one account, an array of one.',
  });
}

/**
 * Checks a submission against the matrix of section 4.3 before anything is sent; `unchecked` accepts longer keys.
 * @param account names it in the error: `credential 7`, or `line 8` of a file
 * @throws CatchwordError USAGE
 */
export function checkSubmission(
  submitted: string | CredentialSubmission,
  account: string,
  unchecked = false,
): CredentialSubmission {
  const reject = (what: string, hint = HINT) => new CatchwordError('USAGE', `${account}: ${what}`, { hint });
  if (typeof submitted === 'string') return checkSubmission({ reference: submitted }, account, unchecked);
  if (typeof submitted !== 'object' || submitted === null) throw reject('it is neither a string nor an object');
  const given = Object.entries(submitted).filter(([, value]) => value !== undefined);
  if (given.length === 0) throw reject('it has no key');
  const fault = given.map(([name, value]) => faultOf(name, value, unchecked)).find((one) => one !== undefined);
  if (fault !== undefined) throw reject(...fault);
  return submitted;
}

export function sizeOf({ reference = '', guid = '', accessToken = '' }: CredentialSubmission): number {
  return reference.length + guid.length + accessToken.length;
}

export function credentialsXml(submissions: readonly CredentialSubmission[]): string {
  return writeXml({
    name: 'credentials',
    content: submissions.map(({ reference, guid, accessToken }) => ({
      name: 'credential',
      attributes: { reference, guid, 'access-token': accessToken },
    })),
  });
}
