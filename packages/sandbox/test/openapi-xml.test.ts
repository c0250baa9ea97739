// @module-tag service

import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { getJson, itWith } from '@catchword/testing/sandbox-for';
import type { XmlElement } from '@catchword/xml/read';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'vitest';
import { callerHeaders, control, type Exchange, exchange, rootOf } from './exchange.ts';

const it = itWith({ items: 1 });

/** Repeated elements, by their parent. */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  licenses: ['license'],
  credentials: ['credential', 'error'],
};

/** Converts to the form of the schemas: attributes and elements are members. */
function membersOf({ name, attributes, children, text }: XmlElement): unknown {
  const names = LISTS[name] ?? [];
  const lists = names.map((list) => [list, children.filter((child) => child.name === list).map(membersOf)] as const);
  const others = children.filter((child) => !names.includes(child.name));
  const members = [...attributes, ...lists, ...others.map((child) => [child.name, membersOf(child)] as const)];
  return members.length === 0 ? text : Object.fromEntries(members);
}

/** Returns whether a value fits the description of an operation's replies with 200. */
async function judgeOf(sandbox: Sandbox, operation: string): Promise<(answer: unknown) => boolean> {
  const [method = '', path = ''] = operation.split(' ');
  const at = [path, method.toLowerCase(), 'responses', '200', 'content', 'application/xml', 'schema'];
  const pointer = at.map((part) => part.replaceAll('/', '~1')).join('/');
  const ajv = new Ajv2020({ strict: false }).addSchema(await getJson<object>(sandbox, '/openapi.json'), 'document');
  return (answer) => ajv.validate({ $ref: `document#/paths/${pointer}` }, answer);
}

const READER = '<user><reference>kiosk-1</reference><first-name>K</first-name><last-name>One</last-name></user>';
const USED = READER.replace('</user>', '<redemption-code>SANDBOX-USED</redemption-code></user>');
const MIXED = '<credentials><credential reference="user-0000001"/><credential reference="unknown"/></credentials>';

it.for([
  ['GET /v3/licenses.xml', 'licenses', null],
  ['POST /v3/credentials.xml', 'credentials', MIXED],
  ['POST /v3/users.xml', 'user', READER],
  ['POST /v3/users.xml', 'error-response', USED],
] as const)(
  'the OpenAPI document describes the reply with 200 of %s: %s',
  async ([operation, root, body], { sandbox }) => {
    const fits = await judgeOf(sandbox, operation);
    const answer = await exchange(sandbox, operation, body);
    expect([answer.status, rootOf(answer).name]).toEqual([200, root]);
    expect([answer.text, fits(membersOf(rootOf(answer)))]).toEqual([answer.text, true]);
    const error = { 'error-code': '601', 'error-text': 'x' };
    for (const other of [{}, { 'error-code': '601' }, { 'error-text': 'x' }, { ...error, license: [] }]) {
      expect([other, fits(other)]).toEqual([other, false]);
    }
  },
);

// @rule 4.2-9
it('4.2 rule 4: the OpenAPI document describes an error instead of licenses', async ({ sandbox }) => {
  const fits = await judgeOf(sandbox, 'GET /v3/licenses.xml');
  const described = ({ status, text }: Exchange) => [
    status,
    text,
    fits(membersOf(rootOf({ status, text, contentType: '' }))),
  ];
  const stale = await exchange(sandbox, 'GET /v3/licenses.xml', null, callerHeaders('unknowntoken'));
  await control(sandbox, 'fail', { reference: 'sandbox-reader', code: 469 });
  const failed = await exchange(sandbox, 'GET /v3/licenses.xml');
  expect([described(stale), described(failed)]).toEqual([
    [200, expect.stringContaining('<error-code>601<'), true],
    [200, expect.stringContaining('<error-code>469<'), true],
  ]);
});
