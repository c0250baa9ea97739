import { CatchwordError } from '@catchword/base/errors';

/** The user who owns the access token. @rule 5-7, 7-5 */
export interface Account {
  /** Whether the reference of the user is known: then a token can be fetched without another token. */
  readonly hasReference: boolean;
  /**
   * Verifies the user by its reference, which changes nothing; without one, by its guid or else by the current token.
   * @returns the valid token, or the error of a 601
   * @throws CatchwordError SERVICE_UNKNOWN_USER if the reference does not exist (603); SOURCE_*; SERVICE_*
   */
  verify(): Promise<string | CatchwordError>;
  /** Resets the token of requests. @returns the new one, if the answer has it. @throws CatchwordError SOURCE_*; SERVICE_* */
  reset(): Promise<string | undefined>;
}

/** The error of a reset that changed nothing. */
export function unchanged(): CatchwordError {
  return new CatchwordError('SERVICE_TOKEN', 'the access token was reset, but the service still returns the old one', {
    hint: 'Retry later; if the error persists, ask the service.',
    serviceCode: 601,
  });
}

/** The token to reset, if none is set. @throws CatchwordError CONFIG_INVALID without the reference of its user */
export async function fetchToken(account: Account): Promise<string> {
  if (!account.hasReference) {
    throw new CatchwordError('CONFIG_INVALID', 'no access token is set, so none can be reset', {
      hint: 'Set {setting}, or the reference of its user.',
      setting: 'CATCHWORD_ACCESS_TOKEN',
    });
  }
  const token = await account.verify();
  if (typeof token === 'string') return token;
  throw token;
}

/**
 * Resets the token, and verifies the user if the answer does not have the new one, or if the reset was rejected: then
 * another process may have reset it.
 * @returns the new token, and the error if the reset was rejected
 * @throws CatchwordError the rejection, if the token is still the same; SERVICE_TOKEN
 */
export async function resetToken(account: Account, old: string) {
  let refused: CatchwordError | null = null;
  try {
    const token = await account.reset();
    if (token !== undefined && token !== old) return { token, refused };
  } catch (error) {
    if (!(error instanceof CatchwordError) || error.retryable) throw error;
    refused = error;
  }
  const token = await account.verify();
  if (typeof token !== 'string') throw refused ?? token;
  if (token === old) throw refused ?? unchanged();
  return { token, refused };
}

/**
 * Fetches the token that replaces a rejected one, and resets it only if the user is verified with the rejected one.
 * @param failed the rejected token; undefined if there was none, so that a reset cannot be sent
 */
export async function fetchAnother(account: Account, failed: string | undefined) {
  const found = await account.verify();
  if (typeof found === 'string' && found !== failed) return { token: found, isReset: false };
  if (failed === undefined) throw found;
  const { token, refused } = await resetToken(account, failed);
  return { token, isReset: refused === null };
}
