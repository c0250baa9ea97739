// @module-tag service

import { credentialsRequest, credentialsResponse } from '@catchword/sandbox/operations/credentials';
import { licensesResponse } from '@catchword/sandbox/operations/licenses';
import { userResponse } from '@catchword/sandbox/operations/users';
import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { sandboxFor } from '@catchword/testing/sandbox-for';
import { readXml, type XmlElement } from '@catchword/xml/read';
import { expect, it } from 'vitest';
import { golden } from '../../../test/service/row.ts';
import { USERS } from '../../../test/service/users.ts';
import { control, type Exchange, exchange } from './exchange.ts';

/** Starts a sandbox with the users of the files, and their guids and tokens. */
async function withUsers(): Promise<Sandbox> {
  const sandbox = await sandboxFor({ items: 10 });
  for (const [, path = '', body = ''] of USERS.matchAll(/\/_sandbox\/(\w+) (.*)/g)) {
    await control(sandbox, path, JSON.parse(body) as object);
  }
  return sandbox;
}

function xml(text: string, status = 200): Exchange {
  return { status, contentType: 'application/xml; charset=utf-8', text };
}

it('the bytes of credentials do not depend on how the request is written', async () => {
  const sandbox = await withUsers();
  const request = golden('credentials-request');
  const variants = [
    request.replaceAll(/<credential ([^>]*)\/>/g, '<credential $1></credential>'),
    request.replaceAll('><credential', '>\n\t<credential\n ').replace('<?xml version="1.0" encoding="UTF-8"?>\n', ''),
    request
      .replace('reference="reader-1" access-token="f7', 'access-token="f7')
      .replace('g1h3"/>', `g1h3" reference='reader-1' />`),
    `\ufeff${request.replace('<credentials>', '<!-- all of them --><credentials>')}\n`,
    request.replace('&lt;é&gt;', '&#60;&#xe9;&#62;'),
  ];
  expect(new Set([...variants, request]).size).toBe(6);
  for (const variant of variants) {
    const { text } = await exchange(sandbox, 'POST /v3/credentials.xml', variant);
    expect(text).toBe(golden('credentials-response'));
  }
});

/** Converts to the form of the schemas: attributes and texts by name, repeated elements as arrays. */
function plain(element: XmlElement, repeated: readonly string[]): Record<string, unknown> {
  const members: Record<string, unknown> = Object.fromEntries(element.attributes);
  for (const name of repeated) members[name] = [];
  for (const child of element.children) {
    const isText = child.attributes.size === 0;
    const value = isText ? child.text : plain(child, []);
    if (repeated.includes(child.name)) (members[child.name] as unknown[]).push(value);
    else members[child.name] = value;
  }
  return members;
}

it.each([
  ['credentials-request', credentialsRequest, ['credential']],
  ['credentials-response', credentialsResponse, ['credential', 'error']],
  ['licenses-none', licensesResponse, ['license']],
  ['licenses-two', licensesResponse, ['license']],
  ['user-full-response', userResponse, []],
])('the schemas of the OpenAPI document describe everything in %s', (name, schema, repeated) => {
  const [root] = readXml(golden(name));
  if (root === undefined) throw new Error('the root is missing');
  const document = plain(root, repeated);
  // Parsing removes whatever the schema does not describe.
  expect(schema.parse(document)).toEqual(document);
  expect(schema.meta()?.xml).toEqual({ name: root.name });
});

it('7: the bytes of the error 650 for too many records are those of the file', async () => {
  const sandbox = await withUsers();
  const many = `<credentials>${'<credential reference="reader-1"/>'.repeat(10_001)}</credentials>`;
  expect(await exchange(sandbox, 'POST /v3/credentials.xml', many)).toEqual(xml(golden('error-650'), 400));
});
