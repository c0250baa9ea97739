// @module-tag service

import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { sandboxFor } from '@catchword/testing/sandbox-for';
import { describe, expect, it } from 'vitest';
import { failure } from '../../packages/client/test/connection.ts';
import { talk } from '../../packages/client/test/support.ts';
import { exchange } from '../../packages/sandbox/test/exchange.ts';
import { callOf } from './calls.ts';
import { type Ask, DECLARATION, type Row, withSamples } from './row.ts';
import { TABLES } from './tables.ts';

const XML = 'application/xml; charset=utf-8';
/** Operations of the user who owns the access token. */
const OF_USER = /^(GET \/(v3\/licenses|v4\/products)|POST \/v3\/users\/reset)/;
/** The error for a status, unless a row says more. */
const CODES: Readonly<Record<number, string>> = { 403: 'SERVICE_FORBIDDEN', 404: 'NOT_FOUND', 422: 'SERVICE_INVALID' };

const typeOf = ({ operation }: Ask): string => (/^\w+ \/v3\//.test(operation) ? XML : 'application/json');

const textOf = (body: unknown): string => (typeof body === 'string' ? body : (JSON.stringify(body) ?? ''));

/** The headers that the interface requires of an operation. */
function headersOf(ask: Ask): Record<string, string> {
  const { key, token, operation } = ask;
  return {
    accept: typeOf(ask),
    'content-type': typeOf(ask),
    ...(key !== null && { 'x-service-api-key': key }),
    ...(token !== null && OF_USER.test(operation) && { 'x-service-access-token': token }),
  };
}

const send = (sandbox: Sandbox, ask: Ask) =>
  exchange(sandbox, ask.operation, ask.body === undefined ? null : textOf(ask.body), headersOf(ask));

/** Without the values that the service generates. */
function withoutGenerated(text: string, { generated }: Row): string {
  const pattern = new RegExp(`<(${generated.join('|')})>[^<]*`, 'g');
  return (generated.length === 0 ? text : text.replace(pattern, '<$1>')).replace(DECLARATION, '');
}

/** What a call returns, or the error that it throws. */
async function expectOutcome(made: Promise<unknown>, row: Row): Promise<void> {
  const { asks, status, reply, makes, without = [], fails, secrets } = row;
  const answer = withSamples(reply, ({ value }) => value) as { readonly errors?: readonly string[] } | null;
  if (fails === undefined && (status < 300 || 'makes' in row)) {
    const result = await made;
    if ('makes' in row && (makes ?? null) === null) expect(result).toBe(makes);
    else expect(result).toMatchObject(withSamples(makes ?? { raw: answer }, ({ value }) => value) as object);
    for (const name of without) expect(result).not.toHaveProperty(name, expect.anything());
    return;
  }
  const error = await failure(made, ...[asks.key, asks.token, ...secrets].filter((one) => one !== null));
  expect(error, asks.operation).toMatchObject({ retryable: false, ...(fails ?? { code: CODES[status] }) });
  // A reply that cannot be read has no status.
  if (!/^(XML_INVALID|SOURCE_BODY)$/.test(error.code)) expect(error.status).toBe(status);
  if (Array.isArray(answer?.errors)) for (const text of answer.errors) expect(error.message).toContain(text);
  expect(error.hint).toMatch(/\.$/);
}

const named = (rows: readonly Row[]) =>
  rows.map((row) => [`${row.rules} ${row.says}${row.example && `: ${row.example}`}`, row] as const);

describe.each(Object.entries(TABLES))('the table of %s', (_name, rows) => {
  const without = (side: Row['only']) => named(rows.filter(({ only }) => only !== side));

  it.each(without('client'))('the sandbox replies as the interface says: %s', async (_title, row) => {
    const { given, asks, status, reply } = row;
    const sandbox = await sandboxFor({ items: 0, strict: true, ...row.sandbox });
    for (const one of given) expect(await send(sandbox, one), one.operation).toMatchObject({ status: one.status });
    const { text, ...got } = await send(sandbox, asks);
    expect(got, text).toEqual({ status, contentType: row.type ?? typeOf(asks) });
    if (reply instanceof RegExp) return expect(text).toMatch(reply);
    if (typeof reply === 'string') return expect(withoutGenerated(text, row)).toBe(withoutGenerated(reply, row));
    const forms = withSamples(reply, ({ value, form }) =>
      typeof value === 'number' ? expect.any(Number) : expect.stringMatching(form),
    );
    expect(JSON.parse(text)).toMatchObject(forms as object);
  });

  it.each(without('sandbox'))('the client sends and reads what the interface says: %s', async (_title, row) => {
    const { asks, status, reply } = row;
    const body = withSamples(reply, ({ value }) => value);
    const type = row.type ?? (typeof body === 'string' && body.startsWith('<') ? XML : typeOf(asks));
    const answer = { status, headers: { 'content-type': type }, body };
    const { key, token } = asks;
    const { client, asked } = await talk(() => answer, { apiKey: key ?? '', accessToken: token ?? undefined });
    await expectOutcome(callOf(row, client), row);
    const [sent] = asked;
    expect([sent?.method, sent?.url, asked.length]).toEqual([...asks.operation.split(' '), 1]);
    if (typeof asks.body === 'object') expect(JSON.parse(sent?.body ?? '')).toEqual(asks.body);
    else expect(sent?.body).toBe(textOf(asks.body));
    const { 'content-type': sentType, ...headers } = headersOf(asks);
    expect(sent?.headers).toMatchObject(headers);
    if (asks.body !== undefined) expect(sent?.headers['content-type']).toBe(sentType);
    expect(sent?.headers['x-service-access-token']).toBe(headers['x-service-access-token']);
  });
});
