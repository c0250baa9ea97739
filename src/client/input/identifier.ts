import { parse } from 'isbn3';

/** Normalizes an identifier: ISBN-10 and ISBN-13, dashes, spaces and case make no difference. */
export function canonicalIdentifier(identifier: string): string {
  return parse(identifier.trim())?.isbn13 ?? identifier.replace(/[\s-]/g, '').toUpperCase();
}
