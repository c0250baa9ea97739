import type { Grant } from './accounts/grants.ts';
import type { Numbering } from './catalog/product-numbers.ts';
import { CODES } from './http/error-codes.ts';

/** Redeems a code once: what it grants, or the error's code. */
export interface Redemption {
  /** The error's code, or null where `redeem` would do. */
  refusal(code: string): number | null;
  /** @param code for which `refusal` is null */
  redeem(code: string): Grant[];
}

const REDEEMABLE = ['SANDBOX-BOOK-1', 'SANDBOX-BOOK-2', 'SANDBOX-BOOK-3'];

/**
 * The codes `SANDBOX-BOOK-1` to `SANDBOX-BOOK-3` grant a book, once each; `SANDBOX-USED` is redeemed already, and
 * `SANDBOX-FAILED` fails. No other is valid.
 */
export function createRedemption(numbering: Numbering): Redemption {
  const redeemed = new Set(['SANDBOX-USED']);
  return {
    refusal: (code) => {
      if (redeemed.has(code)) return CODES.alreadyRedeemed;
      if (code === 'SANDBOX-FAILED') return CODES.redemptionFailed;
      return REDEEMABLE.includes(code) ? null : CODES.redemptionInvalid;
    },
    redeem: (code) => {
      redeemed.add(code);
      return [{ sku: numbering.vbid(10 + REDEEMABLE.indexOf(code)), type: 'downloadable', codeUse: 'code-api' }];
    },
  };
}
