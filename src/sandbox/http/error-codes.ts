import { type Answer, refusalAnswer } from './response.ts';

/** Custom codes of the v3 operations; beyond the interface's 601 and 603 they are those that services were seen to use. */
export const CODES = {
  redemptionInvalid: 468,
  alreadyRedeemed: 469,
  redemptionFailed: 470,
  /** The sandbox's own choice: services' code for it is not known. */
  alreadyInUse: 471,
  userNotFound: 474,
  tokenNotValid: 601,
  referenceUnknown: 603,
  malformed: 650,
} as const;

/** What the error of each code says. */
export const MESSAGES: Readonly<Record<number, string>> = {
  [CODES.redemptionInvalid]: 'The redemption code is not valid',
  [CODES.alreadyRedeemed]: 'The redemption code is already redeemed',
  [CODES.redemptionFailed]: 'The redemption failed',
  [CODES.userNotFound]: 'User not found',
  [CODES.tokenNotValid]: 'The access token is no longer valid for the user',
  [CODES.referenceUnknown]: 'The reference value does not exist',
};

/** The error of a whole request, in the body alone or with an HTTP status that says so too. */
export function codeAnswer(status: number, code: number, message = MESSAGES[code] ?? `Error ${code}`): Answer {
  return refusalAnswer('xml', status, message, code);
}
