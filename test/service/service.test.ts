import { request } from 'undici';
import { describe, expect, it } from 'vitest';
import { failure } from '../client/connection.ts';
import { talk } from '../client/support.ts';
import { sandboxFor } from '../sandbox/client.ts';
import { type Ask, type Row, withSamples } from './row.ts';
import { TABLES } from './tables.ts';

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
const OWNER = { key: 'SANDBOXKEY', token: 'sandboxtoken' };
type Caller = typeof OWNER;
/** Operations of the user who owns the access token. */
const OF_USER = /^(GET \/v3\/licenses|GET \/v4\/products|POST \/v3\/users\/reset_access|POST \/v3\/users\.xml\/reset)/;

const isXml = (operation: string): boolean => /^\w+ \/v3\//.test(operation);

/** The headers that the interface requires of an operation. */
function headersOf(operation: string, { key, token }: Caller): Record<string, string> {
  const type = isXml(operation) ? 'application/xml; charset=utf-8' : 'application/json';
  return {
    'x-service-api-key': key,
    ...(OF_USER.test(operation) && { 'x-service-access-token': token }),
    accept: type,
    'content-type': type,
  };
}

function textOf(body: unknown): string {
  return body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
}

async function send(url: string, [operation, body]: Ask, caller: Caller) {
  const [method = '', path = ''] = operation.split(' ');
  const text = body === undefined ? null : textOf(body);
  const response = await request(url + path, { method, headers: headersOf(operation, caller), body: text });
  return { status: response.statusCode, type: response.headers['content-type'], text: await response.body.text() };
}

/** Without the values that the service generates. */
function withoutGenerated(text: string, { generated = [] }: Row): string {
  const pattern = new RegExp(`<(${generated.join('|')})>[^<]*`, 'g');
  return (generated.length === 0 ? text : text.replace(pattern, '<$1>')).replace(DECLARATION, '');
}

function withForms(members: Readonly<Record<string, unknown>>): object {
  const forms = Object.entries(members).map(([name, value]) => [
    name,
    value instanceof RegExp ? expect.stringMatching(value) : value,
  ]);
  return Object.fromEntries(forms);
}

describe.each(Object.entries(TABLES))('the table of %s', (_name, rows) => {
  it.each(rows)('the sandbox replies as the interface says: $rules $says', async (row) => {
    const { given = [], asks, status = 200, reply } = row;
    const { url } = await sandboxFor({ items: 0, strict: true });
    for (const one of given) expect(await send(url, one, OWNER), one[0]).toMatchObject({ status: 200 });
    const { text, ...got } = await send(url, asks, { ...OWNER, ...row });
    const type = isXml(asks[0]) ? 'application/xml; charset=utf-8' : 'application/json';
    expect(got, text).toEqual({ status, type });
    if (typeof reply === 'string') expect(withoutGenerated(text, row)).toBe(withoutGenerated(reply, row));
    else {
      const like = withSamples(reply, ({ value, form }) =>
        typeof value === 'number' ? expect.any(Number) : expect.stringMatching(form),
      );
      expect(JSON.parse(text)).toMatchObject(like as object);
    }
  });

  it.each(rows.filter(({ call }) => call !== undefined))(
    'the client sends and reads what the interface says: $rules $says',
    async ({ asks, status = 200, reply, call, makes, fails, ...row }) => {
      const [operation, body] = asks;
      const caller = { ...OWNER, ...row };
      const type = isXml(operation) ? 'application/xml; charset=utf-8' : 'application/json';
      const answer = { status, headers: { 'content-type': type }, body: withSamples(reply, ({ value }) => value) };
      const options = { apiKey: caller.key, accessToken: caller.token };
      const { client, asked } = await talk(() => answer, options);
      const made = call?.(client) ?? Promise.resolve();
      if (fails !== undefined) expect(await failure(made)).toMatchObject(withForms(fails));
      else if (makes === undefined) expect(await made).toBeUndefined();
      else expect(await made).toMatchObject(makes as object);
      const [sent] = asked;
      expect(`${sent?.method} ${sent?.url}`).toBe(operation);
      if (typeof body === 'object') expect(JSON.parse(sent?.body ?? '')).toEqual(body);
      else expect(sent?.body).toBe(textOf(body));
      const { 'content-type': sentType, ...headers } = headersOf(operation, caller);
      expect(sent?.headers).toMatchObject(headers);
      if (body !== undefined) expect(sent?.headers['content-type']).toBe(sentType);
      expect(sent?.headers['x-service-access-token']).toBe(headers['x-service-access-token']);
    },
  );
});
