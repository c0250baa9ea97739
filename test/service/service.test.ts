// @module-tag service
import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/sandbox/sandbox-server.ts';
import { failure } from '../client/connection.ts';
import { talk } from '../client/support.ts';
import { sandboxFor } from '../sandbox/client.ts';
import { exchange } from '../sandbox/exchange.ts';
import { callOf } from './calls.ts';
import { type Ask, type Caller, type Row, withSamples } from './row.ts';
import { TABLES } from './tables.ts';

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
const XML = 'application/xml; charset=utf-8';
const OWNER = { key: 'SANDBOXKEY', token: 'sandboxtoken' };
/** Operations of the user who owns the access token. */
const OF_USER = /^(GET \/(v3\/licenses|v4\/products)|POST \/v3\/users\/reset)/;
/** The error for a status, unless a row says more. */
const CODES: Readonly<Record<number, string>> = { 403: 'SERVICE_FORBIDDEN', 404: 'NOT_FOUND', 422: 'SERVICE_INVALID' };

const typeOf = ([operation]: Ask): string => (/^\w+ \/v3\//.test(operation) ? XML : 'application/json');

const textOf = (body: unknown): string => (typeof body === 'string' ? body : (JSON.stringify(body) ?? ''));

/** The headers that the interface requires of an operation. */
function headersOf(ask: Ask, { key, token }: Caller): Record<string, string> {
  return {
    accept: typeOf(ask),
    'content-type': typeOf(ask),
    ...(typeof key === 'string' && { 'x-service-api-key': key }),
    ...(typeof token === 'string' && OF_USER.test(ask[0]) && { 'x-service-access-token': token }),
  };
}

const send = (sandbox: Sandbox, [operation, body]: Ask, caller: Caller) =>
  exchange(sandbox, operation, body === undefined ? null : textOf(body), headersOf([operation], caller));

/** Without the values that the service generates. */
function withoutGenerated(text: string, { generated = [] }: Row): string {
  const pattern = new RegExp(`<(${generated.join('|')})>[^<]*`, 'g');
  return (generated.length === 0 ? text : text.replace(pattern, '<$1>')).replace(DECLARATION, '');
}

/** What a call returns, or the error that it throws. */
async function expectOutcome(made: Promise<unknown>, row: Row): Promise<void> {
  const { asks, status = 200, reply, makes, fails, key, token, secrets = [] } = row;
  const answer = withSamples(reply, ({ value }) => value) as { readonly errors?: readonly string[] } | null;
  if (fails === undefined && (status < 300 || makes !== undefined)) {
    if (makes === null) expect((await made) ?? null).toBeNull();
    else expect(await made).toMatchObject((makes ?? { raw: answer }) as object);
    return;
  }
  const error = await failure(made, ...[key, token, ...secrets].filter((one) => typeof one === 'string'));
  const forms = Object.entries(fails ?? { code: CODES[status] });
  const members = forms.map(([name, value]) => [name, value instanceof RegExp ? expect.stringMatching(value) : value]);
  expect(error, asks[0]).toMatchObject({ status, retryable: false, ...Object.fromEntries(members) });
  if (Array.isArray(answer?.errors)) for (const text of answer.errors) expect(error.message).toContain(text);
  expect(error.hint).toMatch(/\.$/);
}

const named = (rows: readonly Row[]) =>
  rows.map((row) => {
    const { rules, says, example } = row;
    return [`${rules} ${says}${example === undefined ? '' : `: ${example || 'nothing'}`}`, row] as const;
  });

describe.each(Object.entries(TABLES))('the table of %s', (_name, rows) => {
  const [ofSandbox, ofClient] = [rows.filter((row) => row.sandbox !== null), rows.filter(({ call }) => call !== null)];

  it.each(named(ofSandbox))('the sandbox replies as the interface says: %s', async (_title, row) => {
    const { given, asks, status = 200, reply } = row;
    const sandbox = await sandboxFor({ items: 0, strict: true, ...row.sandbox });
    for (const one of given) {
      expect(await send(sandbox, one, { ...OWNER, ...one[2] }), one[0]).toMatchObject({
        status: one[2]?.status ?? 200,
      });
    }
    const { text, ...got } = await send(sandbox, asks, { ...OWNER, ...row });
    expect(got, text).toEqual({ status, contentType: row.type ?? typeOf(asks) });
    if (reply instanceof RegExp) return expect(text).toMatch(reply);
    if (typeof reply === 'string') return expect(withoutGenerated(text, row)).toBe(withoutGenerated(reply, row));
    const forms = withSamples(reply, ({ value, form }) =>
      typeof value === 'number' ? expect.any(Number) : expect.stringMatching(form),
    );
    expect(JSON.parse(text)).toMatchObject(forms as object);
  });

  it.each(named(ofClient))('the client sends and reads what the interface says: %s', async (_title, row) => {
    const { asks, status = 200, reply } = row;
    const caller = { ...OWNER, ...row };
    const body = withSamples(reply, ({ value }) => value);
    const type = row.type ?? (typeof body === 'string' && body.startsWith('<') ? XML : typeOf(asks));
    const answer = { status, headers: { 'content-type': type }, body };
    const { client, asked } = await talk(() => answer, { apiKey: caller.key ?? '', accessToken: caller.token ?? '' });
    await expectOutcome(callOf(row, client), { ...row, ...caller });
    const [sent] = asked;
    expect([sent?.method, sent?.url, asked.length]).toEqual([...asks[0].split(' '), 1]);
    if (typeof asks[1] === 'object') expect(JSON.parse(sent?.body ?? '')).toEqual(asks[1]);
    else expect(sent?.body).toBe(textOf(asks[1]));
    const { 'content-type': sentType, ...headers } = headersOf(asks, caller);
    expect(sent?.headers).toMatchObject(headers);
    if (asks[1] !== undefined) expect(sent?.headers['content-type']).toBe(sentType);
    expect(sent?.headers['x-service-access-token']).toBe(headers['x-service-access-token']);
  });
});
