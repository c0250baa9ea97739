import { expect, it } from 'vitest';
import { credentialsRequest, credentialsResponse } from '../../src/sandbox/operations/credentials.ts';
import { licensesResponse } from '../../src/sandbox/operations/licenses.ts';
import { userResponse } from '../../src/sandbox/operations/users.ts';
import type { Sandbox } from '../../src/sandbox/sandbox-server.ts';
import { readXml, type XmlElement } from '../../src/xml/read.ts';
import { sandboxFor } from './client.ts';
import { callerHeaders, control, type Exchange, exchange, golden } from './exchange.ts';

/** Starts a sandbox with the users of the files, and their guids and tokens. */
async function withUsers(): Promise<Sandbox> {
  const sandbox = await sandboxFor({ items: 10 });
  const user = (reference: string | undefined, email: string, guid: string, access_token: string) =>
    control(sandbox, 'user', { reference, email, guid, access_token });
  await user('reader-1', 'reader-1@example.com', '4T6Z1B5N0C3D7G2H8J4P', 'f7d2k9s4m1x8q3w6v5t0z2b7n4c9g1h3');
  await user(undefined, 'full.user@example.com', '7Q2M9XW4TZ1B5N8C3DGK', 'p6j4h8g2d7c3n0b5z1t6w4x8q2v7m9k3');
  await user('reader-2', 'reader-2@example.com', '9V7Q2X8W4T6Z1B5N0C3D', 'k3m9v7q2x8w4t6z1b5n0c3d7g2h8j4p6');
  await user('Tom & "Jerry" <é>', 'tom@example.com', '2H8J4P6K3M9V7Q2X8W4T', 'z1b5n0c3d7g2h8j4p6k3m9v7q2x8w4t6');
  await user('left', 'left@example.com', 'LEFTLEFT', 'a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5');
  await control(sandbox, 'expire', { reference: 'left' });
  return sandbox;
}

async function withLicenses(): Promise<Sandbox> {
  const sandbox = await withUsers();
  const grant = (sku: string, more: object) =>
    control(sandbox, 'grant', { reference: 'reader-1', sku, isbn: sku, ...more });
  const hydrology = {
    imprint: 'Harbour Lane',
    publisher: 'Harbour Lane Press',
    name: 'Elements of Hydrology',
    kind: 'book',
  };
  await grant('9780000000019', {
    imprint: 'Quill',
    publisher: 'Quill & Anchor',
    name: 'Principles of <Botany>',
    kind: 'book',
    type: 'downloadable',
    expiration: 'never',
    code_use: 'code-api',
  });
  await grant('9780000000026', {
    ...hydrology,
    type: 'online',
    term: '180',
    code_use: 'add-drop',
    expiration: '2099-12-31',
  });
  await grant('9780000000026', {
    ...hydrology,
    type: 'downloadable',
    code_use: 'p+e',
    expiration: 'Thu, 10 Mar 2016 22:14:54 GMT',
  });
  return sandbox;
}

const READER = callerHeaders('f7d2k9s4m1x8q3w6v5t0z2b7n4c9g1h3');

function xml(text: string, status = 200): Exchange {
  return { status, contentType: 'application/xml; charset=utf-8', text };
}

// @rule 2.4-1, 4.3-1, 4.3-3..4
it.each(['credentials-one', 'credentials'])(
  'the bytes of credentials of %s, good and failed, are in the order of the request',
  async (name) => {
    const answer = await exchange(await withUsers(), 'POST /v3/credentials.xml', golden(`${name}-request`));
    expect(answer).toEqual(xml(golden(`${name}-response`)));
  },
);

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

// @rule 2.3-1, 4.2-5
it.each([
  ['none', 'sku=9780000000033'],
  ['one', 'sku=9780000000019'],
  ['one', 'sku=9780000000019&license_type=all'],
  ['two', 'sku=9780000000026'],
])('4.2: the bytes of licenses are those of the file %s for %s', async (name, query) => {
  const sandbox = await withLicenses();
  const answer = await exchange(sandbox, `GET /v3/licenses.xml?${query}`, null, READER);
  expect(answer).toEqual(xml(golden(`licenses-${name}`)));
});

it.each([
  ['reference', '5N8C3DGK7Q2M9XW4TZ1B', 'q2x8w4t6z1b5n0c3d7g2h8j4p6k3m9v7'],
  ['full', '1B5N8C3DGK7Q2M9XW4TZ', 'w4t6z1b5n0c3d7g2h8j4p6k3m9v7q2x8'],
])('4.5: the bytes of a %s user, created and read, are those of the file', async (kind, guid, token) => {
  const sandbox = await sandboxFor({ items: 0 });
  const email = kind === 'full' ? 'ada@example.com' : 'pupil-7@example.com';
  const expected = golden(`user-${kind}-response`);
  const created = await exchange(sandbox, 'POST /v3/users.xml', golden(`user-${kind}-request`));
  const values = created.text.match(/<guid>([0-9A-Z]{20})<\/guid><access-token>([0-9a-z]{34})<\/access-token>/);
  const [, madeGuid = '', madeToken = ''] = values ?? [];
  const madeEmail = kind === 'full' ? email : `${madeGuid.toLowerCase()}@users.example`;
  // Generated values replace those of the file. Everything else must be equal to the byte.
  const same = expected.replace(guid, madeGuid).replace(token, madeToken).replace(email, madeEmail);
  expect([created.status, created.text]).toEqual([200, same]);
  const read = await exchange(sandbox, `GET /v3/users.xml/${madeGuid}`);
  expect(read.text).toBe(same);
});

it('4.5: the bytes of a user with the guid and token of the file are those of the file', async () => {
  const sandbox = await sandboxFor({ items: 0 });
  await control(sandbox, 'user', {
    reference: 'pupil-7',
    email: 'pupil-7@example.com',
    first_name: 'Élodie',
    last_name: 'Dubois & Fils',
    guid: '5N8C3DGK7Q2M9XW4TZ1B',
    access_token: 'q2x8w4t6z1b5n0c3d7g2h8j4p6k3m9v7',
  });
  const { text } = await exchange(sandbox, 'GET /v3/users.xml/pupil-7');
  expect(text).toBe(golden('user-reference-response'));
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

// @rule 7-5, 7-7
it('7: the bytes of the error 601 for a stale token are those of the file', async () => {
  const sandbox = await withUsers();
  await control(sandbox, 'expire', { reference: 'reader-1' });
  expect(await exchange(sandbox, 'GET /v3/licenses.xml', null, READER)).toEqual(xml(golden('error-601')));
});

// @rule 4.2-9, 7-1
it.each([469, 474])('7: the bytes of the error %i inside a 200 are those of the file', async (code) => {
  const sandbox = await withUsers();
  await control(sandbox, 'fail', { reference: 'reader-1', code });
  expect(await exchange(sandbox, 'GET /v3/licenses.xml', null, READER)).toEqual(xml(golden(`error-${code}`)));
});

it('7: the bytes of the error 650 for too many records are those of the file', async () => {
  const sandbox = await withUsers();
  const many = `<credentials>${'<credential reference="reader-1"/>'.repeat(10_001)}</credentials>`;
  expect(await exchange(sandbox, 'POST /v3/credentials.xml', many)).toEqual(xml(golden('error-650'), 400));
});
