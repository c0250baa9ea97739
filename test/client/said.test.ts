import { describe, expect, it } from 'vitest';
import { saidByElements, saidByJson, saidIn as saidInBody, saidInRefusal } from '../../src/client/errors/error-body.ts';
import type { Said } from '../../src/client/errors/error-messages.ts';
import { readsAsDone } from '../../src/client/errors/success-words.ts';
import { hiding } from '../../src/client/redact.ts';
import { readXml } from '../../src/xml/read.ts';
import { connectTo, failure, golden, hastyClock, NEVER, serve, TOKEN } from './connection.ts';

const JSON_REPLY = { headers: { 'content-type': 'application/json' }, body: '{}' };
const TEXT = 'The access token is no longer valid';
const hide = hiding(() => []);

function saidIn(body: string): Said {
  return saidInBody(body, hide);
}

describe('what is said of an error', () => {
  it.each([
    ['attributes', `<error code="601" message="${TEXT}"/>`],
    ['attributes, not self-closing', `<error message="${TEXT}" code="601"></error>`],
    ['children', `<error><code>601</code><message>${TEXT}</message></error>`],
    ['children of another name', `<error><error-code> 601 </error-code><description>${TEXT}</description></error>`],
    ['an attribute and text', `<error code="601">${TEXT}</error>`],
    ['nested', `<response><errors><error code="601" description="${TEXT}"/></errors></response>`],
    ['on the root', `<credentials code="601" message="${TEXT}"/>`],
    ['another root', `<response><code>601</code><description>${TEXT}</description></response>`],
    ['CDATA', `<error code="601"><![CDATA[${TEXT}]]></error>`],
    ['in JSON', JSON.stringify({ code: 601, message: TEXT })],
    ['in JSON, as text', JSON.stringify({ error: { code: '601', message: TEXT } })],
    ['in JSON, in a list', JSON.stringify({ errors: [{ code: 601, message: TEXT }] })],
  ])('%s', (_name, body) => {
    expect(saidIn(body)).toEqual({ code: 601, text: TEXT });
  });

  it.each([
    ['{"errors":["a","b"]}', { code: undefined, text: 'a; b' }],
    [
      '{"errors":{"title":["is missing"],"edition":"is 300"}}',
      { code: undefined, text: 'title: is missing; edition: is 300' },
    ],
    ['"Product 601 not found"', { code: undefined, text: 'Product 601 not found' }],
    [`["601: ${TEXT}"]`, { code: 601, text: `601: ${TEXT}` }],
    ['{"errors":', { code: undefined, text: '{"errors":' }],
    ['plain\u0000\u001b text', { code: undefined, text: 'plain text' }],
    ['<error', { code: undefined, text: '' }],
    ['<!DOCTYPE a [<!ENTITY b "c">]><error code="601">&b;</error>', { code: undefined, text: '' }],
    ['<html><body>601</body></html>', { code: undefined, text: '' }],
    ['', { code: undefined, text: '' }],
    ['<response><code>200</code><message>OK</message></response>', { code: undefined, text: '' }],
  ])('%s', (body, expected) => {
    expect(saidIn(body)).toEqual(expected);
  });

  it.each([
    ['<user><email>is already taken</email></user>', 'email: is already taken'],
    [
      '<errors><email>is already taken</email><title>is empty</title></errors>',
      'email: is already taken; title: is empty',
    ],
    ['<message>the email is already taken</message>', 'the email is already taken'],
    ['<response><description>is taken</description></response>', 'is taken'],
    ['<response><user><email>is taken</email></user></response>', 'user: email: is taken'],
    ['{"success":false,"email":"is taken"}', 'email: is taken'],
    [
      '<user><reference>r</reference><access-token>a1b2c3d4e5</access-token></user>',
      'reference: r; access-token: [secret]',
    ],
    ['{"access_token":"a1b2c3d4e5"}', 'access_token: [secret]'],
    ['<user><access-token>is not valid</access-token></user>', 'access-token: is not valid'],
  ])('in a refusal is all of it: %s', (body, text) => {
    expect(saidInRefusal(body, hide)).toEqual({ code: undefined, text });
  });

  it('is a 601 where the access token is a part of its words', () => {
    const said = saidInBody(
      JSON.stringify(`601: ${TEXT}`),
      hiding(() => ['tok']),
    );
    expect(said).toEqual({ code: 601, text: '601: The access [secret]en is no longer valid' });
  });

  it.each([
    [{ success: false, message: 'no permission', sku: 'S' }, 'no permission'],
    [{ success: 'false' }, ''],
    [{ response: { success: false, reason: 'no' } }, 'no'],
    [{ status: 'error', message: 'no' }, 'no'],
  ])('is said by %j', (value, text) => {
    expect(saidByJson(value, ['sku'], hide)).toEqual({ code: undefined, text });
  });

  it.each([
    { success: true, message: 'Created' },
    { sku: 'S', status: 'failed', description: 'A package' },
    { sku: 'S', errors: [] },
    { status: 'ok', message: 'Created' },
  ])('is not said by %j', (value) => {
    expect(saidByJson(value, ['sku'], hide)).toBeUndefined();
  });

  it.each([
    ...['', ' ', '""', '"null"', '"none"', '"false"', '"No error"', '"0"', '[""]', '[null]', '{"title":[]}'],
    ...['{"code":0,"message":"Success"}', '{"code":"200","message":""}', '{"count":0}', 'null', 'false', '0'],
  ])('is not said by a field that holds %s', (held) => {
    for (const name of ['error', 'errors', 'fault', 'failure', 'exceptions']) {
      const value: unknown = JSON.parse(`{"vbid":"A","${name}":${held.trim() || '" "'}}`);
      expect(saidByJson(value, ['vbid'], hide)).toBeUndefined();
    }
  });

  it.each([
    ['{"error":true,"message":"no permission"}', 'no permission'],
    ['{"error":"true","message":"no permission"}', 'no permission'],
    ['{"vbid":"A","error":true,"description":"A book"}', ''],
    ['{"vbid":"A","error":"Yes"}', 'Yes'],
    ['{"failure":"disk full"}', 'disk full'],
    ['{"error":{"code":0,"message":"Not saved"}}', 'Not saved'],
    ['{"errors":["","price 2 ignored"]}', 'price 2 ignored'],
  ])('is said by %s', (body, text) => {
    expect(saidByJson(JSON.parse(body), ['vbid'], hide)?.text.replace(/^; /, '')).toBe(text);
  });

  it('is said by an attribute, unless that says that there is none', () => {
    for (const flag of ['true', 'Yes', '1', 'done', '200', 'down']) {
      expect(saidByElements(readXml(`<user error="${flag}"/>`), hide), flag).toBeDefined();
    }
    for (const body of [
      ...['', 'none', 'no', 'false', '0', 'null', 'no error', 'No errors.'].map((flag) => `<user error="${flag}"/>`),
      ...['<error>none</error>', '<errors/>', '<error code="0" message="Success"/>', '<error><code>200</code></error>'],
    ]) {
      expect(saidByElements(readXml(body), hide), body).toBeUndefined();
    }
  });

  it('has 200 characters at most', () => {
    expect(saidIn(JSON.stringify('x'.repeat(1_000))).text).toHaveLength(200);
  });

  it.each([
    ['texts under a long name', { errors: { ['n'.repeat(300_000)]: Array.from({ length: 60_000 }, () => 'a') } }],
    ['long texts', { errors: Array.from({ length: 200 }, () => 'x'.repeat(50_000)) }],
    ['names inside of names', { errors: { ['n'.repeat(300_000)]: { ['m'.repeat(300_000)]: ['a', 'b'] } } }],
  ])('is as short, and made as cheaply, of many %s', (_name, body) => {
    const error = saidByJson(body, [], hide);
    expect(error?.text.length).toBeGreaterThan(100);
    expect(error?.text.length).toBeLessThanOrEqual(4_000);
  });
});

describe('a text that answers a write', () => {
  it.each([
    ...['Created, books are not affected', 'Created asset "The Comedy of Errors"', 'Created The Comedy of Errors'],
    ...['Created without any errors', 'Updated, nothing else was changed', 'Updated; the token is not changed'],
    ...['OK', 'done', 'true', '200 OK', 'Saved!', 'Package deleted', 'Asset A-1 was successfully updated', 'queued'],
    ...[
      'Completed: 2 errors were mended',
      'Asset updated without errors',
      'success: true',
      '9781402894626',
      'L-999-70031',
    ],
  ])('says that it was done: %s', (text) => {
    expect(readsAsDone(text, () => true)).toBe(true);
  });

  it.each([
    ...['Service down for maintenance', 'Title is required', 'Too many requests', 'Bad request', 'Timeout', 'Oops'],
    ...['Internal trouble, try later', 'Rejected', 'Nothing was saved', 'Nothing changed', 'success: false', 'false'],
    ...['Package could not be created', 'Package not found', 'Not created', 'Must be completed', 'Couldn’t be saved'],
    ...['Updated title is required', 'Deleted assets cannot be updated', 'Failed, not saved', 'Update failed'],
    ...[
      '601',
      '422',
      'Error 12',
      'error-12',
      'maintenance',
      'No asset was updated',
      'Error: created twice',
      'Update success: false',
      'deleted: 0',
    ],
  ])('does not: %s', (text) => {
    expect(readsAsDone(text, () => true)).toBe(false);
  });

  it.each(['HTTP-502', 'ERR-12', '12', 'L-999-70031'])('is no identifier where none is made: %s', (text) => {
    expect(readsAsDone(text, () => false)).toBe(false);
  });
});

describe('an error of the service', () => {
  it.each([
    [200, golden('error-601.xml'), { code: 'SERVICE_TOKEN', serviceCode: 601, exitCode: 2 }],
    [401, golden('error-601.xml'), { code: 'SERVICE_TOKEN', serviceCode: 601 }],
    [601, '', { code: 'SERVICE_TOKEN', serviceCode: 601 }],
    [
      404,
      '<error code="603" message="no such reference"/>',
      { code: 'SERVICE_UNKNOWN_USER', serviceCode: 603, exitCode: 1 },
    ],
    [
      422,
      '{"title":["can\'t be blank"],"edition":"too large"}',
      { message: expect.stringContaining("title: can't be blank; edition: too large") as string },
    ],
    [422, '{"errors":["title is missing"]}', { code: 'SERVICE_INVALID', serviceCode: undefined, exitCode: 1 }],
    [400, '<error code="650" message="malformed"/>', { code: 'SERVICE_INVALID', serviceCode: 650 }],
    [403, '{"errors":["not yours"]}', { code: 'SERVICE_FORBIDDEN', exitCode: 1 }],
    [401, '', { code: 'SOURCE_AUTH', exitCode: 2 }],
    [404, '"Package x not found"', { code: 'NOT_FOUND' }],
    [404, '', { code: 'SOURCE_NOT_SERVICE' }],
    [409, '<error code="468" message="invalid"/>', { code: 'SERVICE_ERROR', serviceCode: 468 }],
    [500, '<error code="999" message="?"/>', { code: 'SERVICE_ERROR', serviceCode: 999 }],
    [418, '', { code: 'SOURCE_REFUSED' }],
  ])('with status %i and %s', async (status, body, expected) => {
    const { url } = await serve(() => ({ status, body }));
    const { caller } = connectTo(url);
    const call = { method: 'PUT', path: '/v4/x', token: true, repeatable: false, signal: NEVER, body: '{}' } as const;
    const xml = () =>
      caller.xml(call, (answer) => {
        throw new Error(`read ${answer.status}`);
      });
    if (status !== 200) {
      const error = await failure(xml());
      expect(error).toMatchObject({ ...expected, status });
      expect(error.hint).toMatch(/\.$/);
    }
    if (body.startsWith('<')) return;
    expect(await failure(caller.json(call))).toMatchObject({ ...expected, status });
  });

  it('does not repeat the token, whatever the status', async () => {
    for (const status of [200, 422]) {
      const { url } = await serve(() => ({ status, body: JSON.stringify({ errors: [`you sent ${TOKEN}`] }) }));
      const call = { method: 'PUT', path: '/v4/x', token: true, repeatable: false, signal: NEVER } as const;
      const error = await failure(connectTo(url).caller.json(call));
      expect(error.message).toContain('you sent [secret]');
    }
  });
});

describe('asking again', () => {
  const call = { method: 'POST', path: '/v3/x', token: false, signal: NEVER } as const;

  it('what failed half-way is asked again only where that does no harm', async () => {
    for (const repeatable of [true, false]) {
      const { url, asked } = await serve((_asked, index) => (index === 0 ? { status: 503 } : JSON_REPLY));
      const answered = connectTo(url).caller.json({ ...call, repeatable });
      if (repeatable) await answered;
      else expect(await failure(answered)).toMatchObject({ code: 'SOURCE_UNAVAILABLE' });
      expect(asked).toHaveLength(repeatable ? 2 : 1);
    }
  });

  it('what was refused for its rate is asked again, not before the service allows it', async () => {
    const { url, asked } = await serve((_asked, index) =>
      index === 0 ? { status: 429, headers: { 'retry-after': '1' } } : JSON_REPLY,
    );
    const clock = hastyClock();
    const startedAt = clock.now();
    await connectTo(url, {}, clock).caller.json({ ...call, repeatable: false });
    expect(asked).toHaveLength(2);
    expect(clock.now() - startedAt).toBeGreaterThanOrEqual(1_000);
  });

  it('ends at once where the service asked for a pause of hours, for the calls after it as well', async () => {
    const { url, asked } = await serve(() => ({ status: 429, headers: { 'retry-after': '86400' } }));
    const clock = hastyClock();
    const startedAt = clock.now();
    const { caller } = connectTo(url, {}, clock);
    for (let calls = 0; calls < 3; calls++) {
      const error = await failure(caller.json({ ...call, repeatable: true }));
      expect(error).toMatchObject({ code: 'SOURCE_RATE_LIMITED', retryAfterMs: expect.any(Number) as number });
      expect(error.hint).toMatch(/\.$/);
    }
    expect(asked).toHaveLength(1);
    expect(clock.now() - startedAt).toBeLessThan(3_600_000);
  });

  it('ends', async () => {
    const { url, asked } = await serve(() => ({ status: 503 }));
    await failure(connectTo(url).caller.json({ ...call, repeatable: true }));
    expect(asked).toHaveLength(5);
  });
});
