/** The digits of 0 to 999 and their share of the ISBN-13 checksum, so that an ISBN costs three look-ups. */
const DIGITS = Array.from({ length: 1000 }, (_, group) => String(group).padStart(3, '0'));
const weighted = (outer: number, inner: number) =>
  Uint8Array.from(DIGITS, (group) => Number(group[0]) * outer + Number(group[1]) * inner + Number(group[2]) * outer);
const OUTER_THREE = weighted(3, 1);
const OUTER_ONE = weighted(1, 3);
/** Checksum of the prefix 978. */
const PREFIX_SUM = 9 + 3 * 7 + 8;

/** The ISBN-13 with prefix 978 whose nine middle digits are `body` (0 to 999,999,999), check digit included. */
export function isbn13(body: number): string {
  const high = Math.floor(body / 1_000_000);
  const middle = Math.floor(body / 1000) % 1000;
  const low = body % 1000;
  const sum = PREFIX_SUM + (OUTER_THREE[high] ?? 0) + (OUTER_ONE[middle] ?? 0) + (OUTER_THREE[low] ?? 0);
  return `978${DIGITS[high]}${DIGITS[middle]}${DIGITS[low]}${(10 - (sum % 10)) % 10}`;
}

/** The ISBN-10 of the same book. */
export function isbn10(isbn: string): string {
  const body = isbn.slice(3, 12);
  let sum = 0;
  for (let at = 0; at < 9; at++) sum += (10 - at) * Number(body[at]);
  const check = (11 - (sum % 11)) % 11;
  return body + (check === 10 ? 'X' : String(check));
}

/*
 * What follows is arithmetic and not isbn3: that knows the numbers which agencies have given out, and the sandbox's own
 * are none of those.
 */

function isIsbn10(digits: string): boolean {
  return /^\d{9}[\dX]$/.test(digits) && isbn10(`978${digits}`) === digits;
}

function isIsbn13(digits: string): boolean {
  if (!/^97[89]\d{10}$/.test(digits)) return false;
  const sum = Array.from(digits, Number).reduce((total, digit, at) => total + digit * (at % 2 === 0 ? 1 : 3), 0);
  return sum % 10 === 0;
}

/** Without dashes and spaces. */
export function canonicalIsbn(text: string): string {
  return text.replace(/[- ]/g, '').toUpperCase();
}

/** Whether it is an ISBN of 10 or 13 digits with a right check digit; dashes and spaces make no difference. */
export function isIsbn(text: string): boolean {
  const digits = canonicalIsbn(text);
  return isIsbn10(digits) || isIsbn13(digits);
}

/** The ISBN in the other length, for one without dashes; null for an ISBN-13 that has no ISBN-10, as those with 979. */
export function counterpartIsbn(isbn: string): string | null {
  if (isbn.length === 10) return isbn13(Number(isbn.slice(0, 9)));
  return isbn.startsWith('978') ? isbn10(isbn) : null;
}
