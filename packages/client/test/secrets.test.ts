// @module-tag service
import { createHash } from 'node:crypto';
import { hiding } from '@catchword/base/redact';
import { verifyCredentials } from 'catchword-client/credentials/credentials';
import type { Operation } from 'catchword-client/http/caller';
import { createUsers } from 'catchword-client/users/users';
import { expect, it } from 'vitest';
import { connectTo, failure, KEY, NEVER, serve, TOKEN } from './connection.ts';

const PASSWORD = 'p&ss"<1>é  word';

function inXml(text: string): string {
  return text.replace(/./gs, (character) => `&#${character.charCodeAt(0)};`);
}

function inJson(text: string): string {
  return text.replace(/./gs, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const ALL = [KEY, TOKEN, PASSWORD];
const WRITE: Operation<unknown> = {
  method: 'PUT',
  path: '/v4/x',
  format: 'json',
  token: true,
  repeatable: false,
  secrets: [PASSWORD],
  read: ({ value }) => value,
};
const BODIES: [string, string][] = [
  ['references in XML', `<error code="422" message="${ALL.map(inXml).join(' ')}"/>`],
  ['escapes in JSON', `{"errors":["${ALL.map(inJson).join(' ')}"]}`],
  ['names in JSON', `{"errors":{"${ALL.map(inJson).join(' ')}":"x"}}`],
  [
    'a comment between',
    `<error code="422">${ALL.map((one) => `${inXml(one.slice(0, 5))}<!-- -->${inXml(one.slice(5))}`).join(' ')}</error>`,
  ],
  ['other escapes', `<error code="422">${KEY} ${TOKEN} p&amp;ss"&lt;1>é  word</error>`],
  ['XML in JSON', JSON.stringify({ errors: [`<a>${KEY} ${TOKEN} p&amp;ss&quot;&lt;1&gt;é  word</a>`] })],
  ['plain text', `${ALL.join(' ')} are wrong`],
];

it.each(BODIES)('a secret is not in an error at any status: %s', async (_name, body) => {
  for (const status of [200, 403, 404, 422, 500]) {
    const headers = { 'content-type': body.startsWith('<') ? 'application/xml' : 'text/plain' };
    const { url } = await serve(() => ({ status, headers, body }));
    const user = { email: 'a@b.c', password: PASSWORD, firstName: 'a', lastName: 'b' };
    const { caller } = connectTo(url);
    const asked = [() => caller.call(WRITE, NEVER), () => createUsers(caller, '.xml').create(user)];
    const errors = [];
    for (const ask of asked) errors.push(await failure(ask(), PASSWORD, 'p&ss', 'p&amp;ss'));
    if (status !== 200) expect(errors[0]?.message).toContain('[secret]');
  }
});

it('a secret is not cut in two at the end of a message', async () => {
  for (const status of [200, 422]) {
    for (let length = 170; length < 210; length++) {
      const { url } = await serve(() => ({
        status,
        body: `<error code="422" message="${'x'.repeat(length)} ${KEY}"/>`,
      }));
      const user = { reference: 'r', firstName: 'a', lastName: 'b' };
      await failure(createUsers(connectTo(url).caller, '.xml').create(user), KEY.slice(0, 4));
    }
  }
}, 30_000);

it('a secret is not in the result of a credential', async () => {
  const message = `${'x'.repeat(150)} ${KEY} of-another-account submitted-token`;
  const errors = ['a', 'b'].map((reference) => `<error code="601" message="${message}" reference="${reference}"/>`);
  const { url } = await serve(() => `<credentials>${errors.join('')}</credentials>`);
  const submissions = [
    { reference: 'a', accessToken: 'submitted-token' },
    { reference: 'b', accessToken: 'of-another-account' },
  ];
  const results = await verifyCredentials(connectTo(url).caller, submissions, NEVER);
  expect(JSON.stringify(results)).toContain('[secret]');
  for (const part of ['KEYT', 'of-an', 'subm']) expect(JSON.stringify(results)).not.toContain(part);
});

it('a secret is redacted in a text of any length, the longest first, and not shown in part', () => {
  const hide = hiding(() => ['abcdefgh', 'abcdefghijk', '', 'wxyz1234&5']);
  expect(hide('1abcdefghijk2abcdefgh3wxyz1234&54wxyz1234&amp;55')).toBe('1[secret]2[secret]3[secret]4[secret]5');
  expect(hide('12abcdefghijk', 4)).toBe('12[secret]');
  expect(hide('1234abcdefghijk', 4)).toBe('1234');
  expect(hiding(() => [])('abc')).toBe('abc');
  const many = Array.from({ length: 10_000 }, (_, index) => `token-${index}`);
  expect(hiding(() => many)(`token-9999 ${'x'.repeat(1e6)}`)).toHaveLength(1_000_009);
});

it('a secret that is short is redacted only as a word of its own', () => {
  const hide = hiding(() => ['oe', 'e', 'n&', '1x2']);
  expect(hide('the title does not exist')).toBe('the title does not exist');
  expect(hide('you sent “oe”, e and 1x2; not 91x2')).toBe('you sent “[secret]”, [secret] and [secret]; not 91x2');
  expect(hide('n& an& n&b')).toBe('[secret] an& [secret]b');
});

it('a secret is redacted quickly if ten thousand have the same start', () => {
  const many = Array.from({ length: 10_000 }, (_, index) => `a-long-common-beginning-${index}`);
  const hide = hiding(() => many);
  expect(hide('a-long-common-beginning-9999 a-long-common-beginning-1x')).toBe('[secret] [secret]x');
  const near = 'a-long-common-beginning '.repeat(100_000);
  // Comparing with each of them would take a minute or more.
  expect(hide(near)).toBe(near);
}, 30_000);

it('a secret is redacted quickly if a text has the starts of thirty thousand long ones', {
  tags: ['slow'],
  timeout: 60_000,
}, () => {
  const hash = (index: number) => createHash('sha256').update(`${index}`).digest('base64');
  const many = Array.from({ length: 30_000 }, (_, index) => `${hash(index).repeat(5)}"`);
  const near = many.map((secret) => secret.slice(0, -8)).join(' ');
  // One pattern of all would take minutes.
  expect(hiding(() => many)(near)).toBe(near);
});
