import { CatchwordError } from '../../errors.ts';

/** The user whose access token it is, as the service knows it (interface, sections 4.3 and 5). */
export interface Account {
  /**
   * Verifies the user's reference, which changes nothing.
   * @returns the token that is valid now, or the error that says why there is none
   * @throws CatchwordError SERVICE_UNKNOWN_USER where the reference does not exist (603); SOURCE_*; SERVICE_*
   */
  verify(): Promise<string | CatchwordError>;
  /**
   * Resets the token that requests are made with.
   * @throws CatchwordError SOURCE_*; SERVICE_*
   */
  reset(): Promise<void>;
}

/** What came of a reset: a token that is another than before. */
export interface Replaced {
  readonly token: string;
  /** Why the reset was refused; the token had been replaced before. */
  readonly refused: CatchwordError | undefined;
}

/** A token that is another than the one that failed. */
export interface Renewed {
  readonly token: string;
  /** Of a reset; otherwise somebody else's doing. */
  readonly isReset: boolean;
}

function unchanged(): CatchwordError {
  return new CatchwordError('SERVICE_TOKEN', 'the access token was reset, but the service still gives the old one', {
    hint: 'Try again later; if it stays so, ask the service.',
    serviceCode: 601,
  });
}

async function refusalOf(reset: Promise<void>): Promise<CatchwordError | undefined> {
  try {
    await reset;
    return undefined;
  } catch (error) {
    if (error instanceof CatchwordError && !error.retryable) return error;
    throw error;
  }
}

/**
 * Resets the token and verifies the user for the new one. Whatever the reset was refused with, the user is verified: a
 * token that somebody else replaced meanwhile is refused in more than one way.
 * @param old what requests are made with now
 * @throws CatchwordError the refusal, where the token is still the same; SERVICE_TOKEN; what the requests threw
 */
export async function resetToken(account: Account, old: string): Promise<Replaced> {
  const refused = await refusalOf(account.reset());
  const token = await account.verify();
  if (typeof token !== 'string') throw refused ?? token;
  if (token === old) throw refused ?? unchanged();
  return { token, refused };
}

/**
 * The remedy for 601. Verified first: another process may have reset the token, and to reset it again would take it away
 * from that process.
 * @param failed the token that was refused; undefined where none was known
 * @throws CatchwordError as `Account.verify` and `resetToken`
 */
export async function renewedToken(account: Account, failed: string | undefined): Promise<Renewed> {
  const seen = await account.verify();
  if (typeof seen === 'string' && seen !== failed) return { token: seen, isReset: false };
  // Nothing to reset it with.
  if (failed === undefined) throw seen;
  const { token, refused } = await resetToken(account, failed);
  return { token, isReset: refused === undefined };
}
