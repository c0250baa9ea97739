/* XML that no reader may accept, or read for long. */

export const GOOD = '<credentials><credential reference="user-0000001"/></credentials>';

export function entityBomb(): string {
  const level = (name: string, from: string) => `<!ENTITY ${name} "${`&${from};`.repeat(10)}">`;
  const levels = Array.from({ length: 10 }, (_, at) => level(`e${at + 1}`, `e${at}`));
  return `<?xml version="1.0"?><!DOCTYPE c [<!ENTITY e0 "lol">${levels.join('')}]><credentials>&e10;</credentials>`;
}

export const ATTACKS: readonly (readonly [name: string, body: string | Buffer])[] = [
  ['an entity bomb', entityBomb()],
  [
    'a quadratic entity',
    `<!DOCTYPE c [<!ENTITY a "${'x'.repeat(50_000)}">]><credentials>${'&a;'.repeat(10_000)}</credentials>`,
  ],
  [
    'an external entity',
    `<!DOCTYPE c [<!ENTITY x SYSTEM "file:///etc/passwd">]><credentials><credential reference="&x;"/></credentials>`,
  ],
  ['an external entity over HTTP', `<!DOCTYPE c SYSTEM "http://127.0.0.1:1/x.dtd">${GOOD}`],
  ['a parameter entity', `<!DOCTYPE c [<!ENTITY % p SYSTEM "http://127.0.0.1:1/p"> %p;]>${GOOD}`],
  ['a DOCTYPE that declares nothing', `<!DOCTYPE credentials>${GOOD}`],
  ['a DOCTYPE in small letters', `<!doctype credentials>${GOOD}`],
  ['an undeclared entity', '<credentials><credential reference="&x;"/></credentials>'],
  ['deep nesting', '<credentials>'.repeat(20_000) + '</credentials>'.repeat(20_000)],
  ['deep nesting without an end', '<a>'.repeat(49_000)],
  ['nesting below the root', `<credentials>${'<credential>'.repeat(20)}${'</credential>'.repeat(20)}</credentials>`],
  ['hundreds of thousands of tags', `<credentials>${'<credential/>'.repeat(400_000)}</credentials>`],
  [
    'twenty thousand attributes',
    `<credentials><credential ${Array.from({ length: 20_000 }, (_, at) => `a${at}="1"`).join(' ')}/></credentials>`,
  ],
  ['an attribute of 5 MB', `<credentials><credential reference="${'x'.repeat(5 * 2 ** 20)}"/></credentials>`],
  ['an attribute that does not end', `<credentials><credential reference="${'x'.repeat(60_000)}`],
  ['a NUL', '<credentials><credential reference="a\u0000"/></credentials>'],
  ['a reference to NUL', '<credentials><credential reference="&#0;"/></credentials>'],
  ['the end tag of the element that wraps it', `</top><top>${GOOD}`],
  ['UTF-16 with a mark', Buffer.from(`\ufeff<?xml version="1.0" encoding="UTF-16"?>${GOOD}`, 'utf16le')],
  ['UTF-16 without a mark', Buffer.from(GOOD, 'utf16le')],
  ['UTF-7 as declared', `<?xml version="1.0" encoding="UTF-7"?>${GOOD}`],
  ['ISO 8859-1 as declared', `<?xml version='1.0' encoding='ISO-8859-1'?>${GOOD}`],
  ['ISO 8859-1 undeclared', Buffer.from('<credentials><credential reference="\u00e9"/></credentials>', 'latin1')],
  ['UTF-8 cut in the middle', Buffer.from('<credentials><credential reference="é"/></credentials>').subarray(0, 37)],
];
