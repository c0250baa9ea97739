/*
 * Plain arithmetic. A library such as isbn3 rejects numbers of registration groups that are newer than its list, or that no
 * agency has given out, such as the numbers of the sandbox.
 */

/** @param body the nine digits between the prefix and the check digit */
function checkDigit13(prefix: '978' | '979', body: number): number {
  let sum = prefix === '978' ? 38 : 39;
  // Nine digits fit into 32 bits. With `| 0` the engine divides integers, which takes a third of the time.
  for (let rest = body | 0, weight = 3; rest > 0; rest = (rest / 10) | 0, weight = 4 - weight) {
    sum += (rest % 10) * weight;
  }
  return (10 - (sum % 10)) % 10;
}

/** Returns the ISBN-13 with prefix 978 and these nine middle digits, 0 to 999,999,999. */
export function isbn13(body: number): string {
  return `978${String(body).padStart(9, '0')}${checkDigit13('978', body)}`;
}

export function isbn10(isbn: string): string {
  const body = isbn.slice(3, 12);
  let sum = 0;
  for (let at = 0; at < 9; at++) sum += (10 - at) * Number(body[at]);
  const check = (11 - (sum % 11)) % 11;
  return body + (check === 10 ? 'X' : String(check));
}

export function canonicalIsbn(text: string): string {
  return text.replace(/[\s-]/g, '').toUpperCase();
}

/** Whether it is an ISBN of 10 or 13 digits with the right check digit. Dashes and spaces are ignored. */
export function isIsbn(text: string): boolean {
  const digits = canonicalIsbn(text);
  if (/^\d{9}[\dX]$/.test(digits)) return isbn10(`978${digits}`) === digits;
  const [, prefix, body, check] = /^(97[89])(\d{9})(\d)$/.exec(digits) ?? [];
  return checkDigit13(prefix === '979' ? '979' : '978', Number(body)) === Number(check);
}

/** Returns the other length of an ISBN without dashes. Null if it has none, as with prefix 979. */
export function counterpartIsbn(isbn: string): string | null {
  if (isbn.length === 10) return isbn13(Number(isbn.slice(0, 9)));
  return isbn.startsWith('978') ? isbn10(isbn) : null;
}

/** The 10-digit and 13-digit forms of an ISBN, without dashes. Empty if `text` is not an ISBN. */
export function isbnForms(text: string): readonly string[] {
  if (!isIsbn(text)) return [];
  const own = canonicalIsbn(text);
  return [own, counterpartIsbn(own)].filter((form) => form !== null);
}

/** Normalizes an identifier: ISBN-10 and ISBN-13, dashes, spaces and case make no difference. */
export function canonicalIdentifier(identifier: string): string {
  const own = canonicalIsbn(identifier);
  return own.length === 10 ? (isbnForms(own)[1] ?? own) : own;
}
