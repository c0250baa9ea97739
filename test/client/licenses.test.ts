// @module-tag service
import { expect, it } from 'vitest';
import { expirationMs, isOwned, type LicenseQuery, readLicenses } from '../../src/client/licenses/licenses.ts';
import { connectTo, failure, golden, NEVER, type Reply, serve } from './connection.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');

async function answered(reply: Reply | string, query: LicenseQuery = {}) {
  const { url } = await serve(() => reply);
  return await readLicenses(connectTo(url).caller, query, NEVER);
}

// @rule 2.3-2
it('licenses read download as downloadable, and keep unknown attributes', async () => {
  const { licenses } = await answered('<licenses><license sku="a" type="download" seats="4"></license></licenses>');
  expect(licenses).toMatchObject([{ type: 'downloadable', others: { seats: '4' }, name: null }]);
});

it('licenses may have child elements instead of attributes', async () => {
  const members = '<sku>a</sku><type>download</type><expiration>2016-03-10</expiration><part_of/><seats>4</seats>';
  const { licenses } = await answered(`<licenses><license>${members}</license></licenses>`);
  expect(licenses).toMatchObject([
    { sku: 'a', type: 'downloadable', expiresAt: Date.UTC(2016, 2, 11), partOf: null, others: { seats: '4' } },
  ]);
  const both = await answered('<licenses><license sku="a" kind=""><sku>b</sku><kind>book</kind></license></licenses>');
  expect(both.licenses).toMatchObject([{ sku: 'a', kind: 'book' }]);
});

// @rule 4.2-9
it('licenses may come without their root, but not without content', async () => {
  expect((await answered('<license sku="a"/><license sku="b"/>')).licenses).toMatchObject([{ sku: 'a' }, { sku: 'b' }]);
  expect(await answered('<summary total_products="0"/>')).toEqual({ licenses: [], total: 0 });
  // As "not licensed", such an answer would sell a title twice.
  for (const nothing of ['', '<?xml version="1.0"?>\n', '<hash/>']) {
    const error = await failure(answered(nothing));
    expect(error).toMatchObject({ code: 'SERVICE_ERROR', status: 200 });
  }
});

// @rule 4.2-9, 7-1
it.each([
  [golden('error-469.xml'), { code: 'SERVICE_ERROR', serviceCode: 469 }],
  [golden('error-474.xml'), { code: 'SERVICE_UNKNOWN_USER', serviceCode: 474 }],
  [golden('error-650.xml'), { code: 'SERVICE_INVALID', serviceCode: 650 }],
  ['<licenses><error code="469" message="Already redeemed"/></licenses>', { serviceCode: 469 }],
  ['<response><group><error code="469"/></group><licenses/></response>', { serviceCode: 469 }],
  ['<error>Something failed</error>', { code: 'SERVICE_ERROR', serviceCode: undefined }],
  ['{"errors":["Something failed"]}', { code: 'SERVICE_ERROR' }],
  ['<licenses>Try later</licenses>', { code: 'SERVICE_ERROR' }],
  ['<licenses message="try later"/>', { code: 'SERVICE_ERROR' }],
  ['<licenses code="470" message="Failed"/>', { code: 'SERVICE_ERROR' }],
  ['<response><message>try later</message><licenses/></response>', { code: 'SERVICE_ERROR' }],
  ['<licenses><summary message="try later" total_products="3"/></licenses>', { code: 'SERVICE_ERROR' }],
  ['<licenses status="pending"/>', { code: 'SERVICE_ERROR' }],
  ['<licenses truncated="true"/>', { code: 'SERVICE_ERROR' }],
  ['<licenses total_products="many"/>', { code: 'SERVICE_ERROR' }],
  ['<warning>down</warning><licenses/>', { code: 'SERVICE_ERROR' }],
  ['<licenses><error/></licenses>', { code: 'SERVICE_ERROR' }],
  ['<licenses><product sku="9780000000019" expiration="never"/></licenses>', { code: 'SERVICE_ERROR' }],
  ['<licenses xmlns:l="u"><l:license sku="a" expiration="never"/></licenses>', { code: 'SERVICE_ERROR' }],
  ['<licenses><License sku="a" expiration="never"/></licenses>', { code: 'SERVICE_ERROR' }],
  ['<errors/>', { code: 'SERVICE_ERROR' }],
])('the body %s inside a 200 is an error', async (body, expected) => {
  expect(await failure(answered(body))).toMatchObject({ ...expected, status: 200 });
});

it.each([
  '<licenses></licenses>',
  '<licenses xmlns="urn:a"/>',
  '<licenses distributable_products="0" total_products="3"/>',
  '<licenses><summary distributable_products="0" total_products="0"/></licenses>',
  '<licenses><distributable_products>0</distributable_products><total_products>0</total_products></licenses>',
  '<licenses><summary><total_products>0</total_products></summary></licenses>',
])('the answer %s means that no license is held', async (body) => {
  expect((await answered(body)).licenses).toEqual([]);
});

it('an answer without licenses is an error if it is plain text, which is shown without tokens', async () => {
  for (const [body, shown] of [
    ['Service busy', 'without licenses: “Service busy”'],
    ['New token: 9f8e7d6c5b4a for you', 'without licenses: “New token: [secret] for you”'],
  ] as const) {
    const error = await failure(answered({ headers: { 'content-type': 'text/plain' }, body }));
    expect(error).toMatchObject({ code: 'SERVICE_ERROR', status: 200 });
    expect(error.message).toContain(shown);
  }
});

it('an answer without licenses may have the counts as elements', async () => {
  const counts = '<distributable_products>0</distributable_products><total_products>3</total_products>';
  const none = { licenses: [], distributable: 0, total: 3 };
  expect(await answered(`<licenses>${counts}</licenses>`)).toEqual(none);
  expect(await answered(`<licenses><summary>${counts}</summary></licenses>`)).toEqual(none);
});

it('an answer without licenses may be an empty list of errors next to a license', async () => {
  const { licenses } = await answered('<licenses><errors type="array"/><license sku="a" status="error"/></licenses>');
  expect(licenses).toMatchObject([{ sku: 'a', others: { status: 'error' } }]);
});

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

it('licenses at any depth come with their counts', async () => {
  const body = `<response><licenses><summary total_products="4"/>${license('')}</licenses></response>`;
  expect(await answered(body)).toMatchObject({ licenses: [{ sku: 'L-1' }], total: 4 });
});
