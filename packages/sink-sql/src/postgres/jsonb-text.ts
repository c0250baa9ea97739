import { elementsOf, objectMembers } from '@catchword/catalog/json-text';

/* Writes values as PostgreSQL prints them, so that texts can be compared by their digests. */

const NUMBER = /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/;
/** PostgreSQL refuses numbers with more digits. */
const MOST_DIGITS = 200_000;

/** A number as `numeric` prints it: without an exponent, with every digit that was written. */
export function numericText(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = NUMBER.exec(text.trim()) ?? [];
  const shift = Number(exponent);
  if (Math.abs(shift) > MOST_DIGITS || whole + fraction === '') return text;
  const scale = Math.max(0, fraction.length - shift);
  const digits = (whole + fraction + '0'.repeat(Math.max(0, shift - fraction.length))).padStart(scale + 1, '0');
  const point = digits.length - scale;
  const value = `${digits.slice(0, point).replace(/^0+(?=\d)/, '')}${scale > 0 ? `.${digits.slice(point)}` : ''}`;
  return sign === '-' && /[1-9]/.test(value) ? `-${value}` : value;
}

/** Shorter keys come first, then by their bytes. */
function byKey([a]: readonly [string, string], [b]: readonly [string, string]): number {
  const [first, second] = [Buffer.from(a), Buffer.from(b)];
  return first.length - second.length || first.compare(second);
}

/** JSON as `jsonb` prints it. @param json valid JSON that `jsonb` can hold */
export function jsonbText(json: string): string {
  const text = json.trim();
  if (text.startsWith('{')) {
    const members = [...objectMembers(text)].sort(byKey);
    return `{${members.map(([key, value]) => `${JSON.stringify(key)}: ${jsonbText(value)}`).join(', ')}}`;
  }
  if (text.startsWith('[')) return `[${elementsOf(text).map(jsonbText).join(', ')}]`;
  if (text.startsWith('"')) return JSON.stringify(JSON.parse(text));
  return /^[tfn]/.test(text) ? text : numericText(text);
}
