// @module-tag service

import { expirationMs, isOwned, type LicenseQuery, readLicenses } from 'catchword-client/licenses/licenses';
import { expect, it } from 'vitest';
import { connectTo, NEVER, type Reply, serve } from './connection.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');

async function answered(reply: Reply | string, query: LicenseQuery = {}) {
  const { url } = await serve(() => reply);
  return await readLicenses(connectTo(url).caller, query, NEVER);
}

it.each([
  ['never', null],
  ['Never', null],
  ['Thu, 10 Mar 2016 22:14:54 GMT', Date.UTC(2016, 2, 10, 22, 14, 54)],
  ['2016-03-10', Date.UTC(2016, 2, 11)],
  ['2016-03-10T22:14:54Z', Date.UTC(2016, 2, 10, 22, 14, 54)],
  ['2016-03-10T22:14:54+02:00', Date.UTC(2016, 2, 10, 20, 14, 54)],
  ['2016-03-10 22:14:54 UTC', undefined],
  ['2016-03-10T22:14:54', Date.UTC(2016, 2, 10, 22, 14, 54)],
  ['Thu, 31 Feb 2016 22:14:54 GMT', undefined],
  ['Thu, 10 Mai 2016 22:14:54 GMT', undefined],
  ['10/03/2016', undefined],
  ['2016-13-40', undefined],
  ['2016-02-30', undefined],
  ['Thu, 40 Mar 2016 22:14:54 GMT', undefined],
  ['', undefined],
  [null, undefined],
])('the expiration %s is read', (text, expected) => {
  expect(expirationMs(text)).toBe(expected);
});

const NEVER_ENDS = 'expiration="never"';

function license(attributes: string, sku = 'L-1'): string {
  return `<license sku="${sku}" ${attributes}/>`;
}

function inElements(day: string): string {
  return `<license><sku>L-1</sku><expiration>${day}</expiration></license>`;
}

const ISBN = `isbn="9780306406157" ${NEVER_ENDS}`;
const RENTAL = license(`type="online" ${ISBN}`) + license(`type="downloadable" ${ISBN}`, 'L-1R180');
const OTHER = license(NEVER_ENDS, 'b');

// @rule 2.3-3, 3-2, 4.2-7, 4.2-10
it.each([
  ['L-1', '', 'no'],
  // Until the license expires; a missing or unreadable expiration does not end it.
  ['L-1', license(NEVER_ENDS), 'yes'],
  ['L-1', license('expiration="2026-11-22"'), 'yes'],
  ['L-1', license('expiration="2026-11-21"'), 'yes'],
  ['L-1', license('expiration="Sat, 21 Nov 2026 11:59:59 GMT"'), 'no'],
  ['L-1', license('expiration="2026-11-21T12:00:00Z"'), 'no'],
  ['L-1', license('expiration="soon"'), 'yes'],
  ['L-1', license(''), 'yes'],
  ['L-1', license('type="online" expiration="2010-01-01"') + license('type="downloadable"'), 'yes'],
  // By its ISBN, whatever its identifier in the list, and as a rental.
  ...['9780306406157', '0-306-40615-2', 'L-1', 'L-1R365'].flatMap((sku) => [
    [sku, RENTAL, 'yes'],
    [sku, RENTAL + OTHER, 'yes'],
  ]),
  ['L-2', RENTAL + OTHER, 'no'],
  ['9780306406157', license(NEVER_ENDS, '9780306406157R30') + OTHER, 'yes'],
  // At any depth, in child elements, and in a list of the whole account.
  ['L-1', `<group>${license(NEVER_ENDS)}</group>`, 'yes'],
  ['L-1', `<a><b>${license(NEVER_ENDS)}</b></a>`, 'yes'],
  ['L-1', inElements('2010-01-01'), 'no'],
  ['L-1', inElements('2099-01-01'), 'yes'],
  ['L-2', inElements('2099-01-01') + OTHER, 'no'],
  ['0-306-40615-2', license(NEVER_ENDS, '9780306406157') + OTHER, 'yes'],
  ['9780000000019', license(NEVER_ENDS, '9780306406157') + OTHER, 'no'],
  // Of a registration group that is newer than lists of groups.
  ['662200000X', license(NEVER_ENDS, '9786622000000') + OTHER, 'yes'],
  // A license that names no title may be for any.
  ...['<license/>', `<license type="online" ${NEVER_ENDS}/>`, '<license sku="" isbn=""/>'].flatMap((nameless) => [
    ['L-1', nameless, 'neither'],
    ['L-1', nameless + license(NEVER_ENDS), 'yes'],
    ['L-2', nameless + license(NEVER_ENDS) + OTHER, 'neither'],
  ]),
  ['L-1', '<license expiration="2010-01-01"/>', 'no'],
])('the title %s is owned by %s: %s', async (sku, body, expected) => {
  const held = await answered(`<licenses>${body}</licenses>`);
  if (expected === 'neither') expect(() => isOwned(held, sku, NOW)).toThrow('neither sku nor isbn');
  else expect(isOwned(held, sku, NOW)).toBe(expected === 'yes');
});
