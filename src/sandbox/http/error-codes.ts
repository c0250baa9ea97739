import { Rejection } from './reply.ts';

/**
 * Custom codes of the v3 operations: the interface's 601 and 603, and others that services were seen to use.
 * @rule 7-5..6
 */
export const CODES = {
  redemptionInvalid: 468,
  alreadyRedeemed: 469,
  redemptionFailed: 470,
  userNotFound: 474,
  tokenNotValid: 601,
  referenceUnknown: 603,
  malformed: 650,
  /** Seen for a reference; the code for an email is not known. */
  alreadyInUse: 904,
} as const;

export const MESSAGES: Readonly<Record<number, string>> = {
  [CODES.redemptionInvalid]: 'The redemption code is not valid',
  [CODES.alreadyRedeemed]: 'The redemption code is already redeemed',
  [CODES.redemptionFailed]: 'The redemption failed',
  [CODES.userNotFound]: 'User not found',
  [CODES.tokenNotValid]: 'The access token is not valid any longer for the user',
  [CODES.referenceUnknown]: 'The reference value does not exist',
};

/** Rejects a whole v3 request. With status 200 only the body says that the request failed. */
export function codeRejection(status: number, code: number, message = MESSAGES[code] ?? `Error ${code}`): Rejection {
  return new Rejection(status, message, { code });
}
