/*
 * Text from a source may reach a terminal or a log. A terminal obeys control characters, and characters that change the
 * direction of text disguise a line. They are escaped.
 */

// Control characters but line feeds (C0, DEL, C1), line and paragraph separators, characters that change the direction.
const UNPRINTABLE = /[^\P{Cc}\n]|[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** Escapes unprintable characters, such as `\u001b`; keeps line feeds. JSON text stays JSON text with the same value. */
export function printableLines(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Does the same, and makes the text one line: white space becomes spaces. */
export function printable(text: string): string {
  return printableLines(text.replace(/[\t\n\r]+/g, ' '));
}

/** The sequences that colour text on a terminal. */
const COLOUR = new RegExp(`(${String.fromCharCode(27)}\\[\\d+(?:;\\d+)*m)`);

/** Escapes unprintable characters, but keeps colours and line feeds. */
export function printableColoured(text: string): string {
  const parts = text.split(COLOUR);
  return parts.map((part, index) => (index % 2 === 1 ? part : printableLines(part))).join('');
}
