/** Parses a number of decimal digits only; null for any other text, or outside `min` to `max`. */
export function wholeNumber(text: string, min = 0, max = Number.MAX_SAFE_INTEGER): number | null {
  if (!/^\d+$/.test(text)) return null;
  const number = Number(text);
  return number >= min && number <= max ? number : null;
}
