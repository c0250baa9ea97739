/** The check digit of the first nine digits of an ISBN-10, or the first twelve of an ISBN-13. */
function checkDigit(digits: string): string {
  const isTen = digits.length === 9;
  const sum = Array.from(digits).reduce(
    (total, digit, at) => total + Number(digit) * (isTen ? 10 - at : at % 2 === 0 ? 1 : 3),
    0,
  );
  if (!isTen) return String((10 - (sum % 10)) % 10);
  const check = (11 - (sum % 11)) % 11;
  return check === 10 ? 'X' : String(check);
}

/**
 * The 10-digit and 13-digit forms of an ISBN, without dashes. Empty if `text` is not an ISBN. Checks only the check
 * digit, because the registration group may be newer than any library's list.
 */
export function isbnForms(text: string): readonly string[] {
  const bare = text.replace(/[\s-]/g, '').toUpperCase();
  if (!/^(\d{9}[\dX]|97[89]\d{10})$/.test(bare) || checkDigit(bare.slice(0, -1)) !== bare.at(-1)) return [];
  if (bare.length === 10) {
    const long = `978${bare.slice(0, 9)}`;
    return [bare, `${long}${checkDigit(long)}`];
  }
  const short = bare.slice(3, 12);
  return bare.startsWith('978') ? [bare, `${short}${checkDigit(short)}`] : [bare];
}
