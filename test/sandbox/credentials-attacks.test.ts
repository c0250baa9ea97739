import { Readable } from 'node:stream';
import { request } from 'undici';
import { expect } from 'vitest';
import type { Sandbox } from '../../src/sandbox/sandbox-server.ts';
import { CREDENTIALS, itWith } from './client.ts';
import { errorOf, exchange, outcomes } from './exchange.ts';

const it = itWith({ items: 0 });

const GOOD = '<credentials><credential reference="user-0000001"/></credentials>';

function entityBomb(): string {
  const level = (name: string, from: string) => `<!ENTITY ${name} "${`&${from};`.repeat(10)}">`;
  const levels = Array.from({ length: 10 }, (_, at) => level(`e${at + 1}`, `e${at}`));
  return `<?xml version="1.0"?><!DOCTYPE c [<!ENTITY e0 "lol">${levels.join('')}]><credentials>&e10;</credentials>`;
}

async function isServing(sandbox: Sandbox): Promise<boolean> {
  const answer = await exchange(sandbox, 'POST /v3/credentials.xml', GOOD);
  return answer.status === 200 && outcomes(answer)[0] === 'user-0000001';
}

const ATTACKS: readonly (readonly [name: string, body: string | Buffer])[] = [
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

it.for(ATTACKS)(
  'POST /v3/credentials.xml rejects %s with 650, and continues to serve',
  async ([, body], { sandbox }) => {
    const answer = await exchange(sandbox, 'POST /v3/credentials.xml', body);
    expect(errorOf(answer)).toEqual([400, '650']);
    expect(answer.text.length).toBeLessThan(500);
    expect(answer.text).not.toMatch(/root:|lollol/);
    expect(await isServing(sandbox)).toBe(true);
  },
);

it.for([
  ['with its length', true],
  ['in chunks', false],
] as const)('POST /v3/credentials.xml rejects 100 MB %s because of their size', async ([, withLength], { sandbox }) => {
  const piece = Buffer.alloc(2 ** 20, 'x');
  const start = Buffer.from('<credentials><credential reference="');
  const pieces = (function* () {
    yield start;
    for (let sent = 0; sent < 100; sent++) yield piece;
  })();
  const length = { 'content-length': String(start.length + 100 * piece.length) };
  const response = await request(`${sandbox.url}/v3/credentials.xml`, {
    method: 'POST',
    body: Readable.from(pieces),
    headers: { ...CREDENTIALS, ...(withLength && length) },
  });
  expect(response.statusCode).toBe(413);
  expect(await response.body.text()).toContain('\n<error-response><error-code>413</error-code>');
  expect(await isServing(sandbox)).toBe(true);
});

it('POST /v3/credentials.xml accepts XML that only looks like an attack', async ({ sandbox }) => {
  const harmless = [
    `<?xml version="1.0" encoding="utf-8" standalone="yes"?>${GOOD}`,
    GOOD.replace('user', '&#117;ser'),
    GOOD.replace('<credential ', '<![CDATA[ & < ]]><credential '),
    `${GOOD}<!-- ]]> &x; -->`,
  ];
  for (const body of harmless) {
    expect(outcomes(await exchange(sandbox, 'POST /v3/credentials.xml', body))).toEqual(['user-0000001']);
  }
});
