/*
 * What a source sends may reach a terminal or a log: a title, the reason of an error, a part of a page that is not JSON.
 * A terminal obeys control characters (it clears itself, moves the cursor, answers into the shell), and characters that
 * change the direction of text show a line as something it is not. None of them is printed.
 */

// Control characters (C0, DEL, C1), line and paragraph separators, and what sets the direction of text.
const UNPRINTABLE = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
const BUT_LINES = /[^\P{Cc}\n]|[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
const SPACING = /[\t\n\r]+/g;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Any text as one line: white space as spaces, other unprintable characters as escapes such as `\u001b`. */
export function printable(text: string): string {
  return text.replace(SPACING, ' ').replace(UNPRINTABLE, escaped);
}

/** The same, with line feeds kept. Of JSON text it makes JSON text that says the same. */
export function printableLines(text: string): string {
  return text.replace(BUT_LINES, escaped);
}
