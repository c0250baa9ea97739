// @module-tag service

import { hiding } from '@catchword/base/redact';
import { readXml } from '@catchword/xml/read';
import { errorInJson, errorInXml, isXml, messageIn, type ServiceMessage } from 'catchword-client/errors/error-message';
import { expect, it } from 'vitest';

const TEXT = 'The access token has expired';
const hide = hiding(() => []);

function message(body: string): ServiceMessage {
  return messageIn(body, hide);
}

function errorInResult(body: string): ServiceMessage | undefined {
  return isXml(body) ? errorInXml(readXml(body), hide) : errorInJson(JSON.parse(body), hide);
}

// @rule 7-7
it.each([
  ['attributes', `<error code="601" message="${TEXT}"/>`],
  ['attributes of an element that is not self-closing', `<error message="${TEXT}" code="601"></error>`],
  ['child elements', `<error><code>601</code><message>${TEXT}</message></error>`],
  [
    'error-code and error-text',
    `<error-response><error-code> 601 </error-code><error-text>${TEXT}</error-text></error-response>`,
  ],
  ['an attribute and the text', `<error code="601">${TEXT}</error>`],
  ['a nested element', `<response><errors><error code="601" description="${TEXT}"/></errors></response>`],
  ['CDATA', `<error code="601"><![CDATA[${TEXT}]]></error>`],
])('the message of an error is read from %s', (_name, body) => {
  expect(message(body)).toEqual({ code: 601, text: TEXT });
});

it.each([
  ['{"errors":["a","b"]}', 'a; b'],
  ['{"errors":{"title":["is missing"]}}', '{"title":["is missing"]}'],
  ['"Product 601 not found"', 'Product 601 not found'],
  ['plain\u0000\u001b text', 'plain text'],
  ['<error message="no" reference="r" guid="g"/>', 'no'],
  ['<errors><error message="a"/><error message="b"/></errors>', 'a; b'],
])('the message of an error of %s has no code', (body, text) => {
  expect(message(body)).toEqual({ code: undefined, text });
});

it.each([
  '{"errors":',
  '{"code":604,"info":"the token has expired"}',
  '<response><code>601</code><description>the token has expired</description></response>',
  '<user><reference>r</reference><access-token>a1b2c3d4e5</access-token></user>',
  '{"access_token":"a1b2c3d4e5"}',
  '<error',
  '<!DOCTYPE a [<!ENTITY b "c">]><error code="601">&b;</error>',
  '<html><body>601</body></html>',
  '',
])('the message of an error is empty for another layout: %s', (body) => {
  expect(message(body)).toEqual({ code: undefined, text: '' });
});

it.each([
  ['{"message":"edition is too large, title is blank"}', 'edition is too large, title is blank'],
  ['{"error":"invalid_request","error_description":"from must be a time"}', 'invalid_request; from must be a time'],
  ['{"detail":"Not enough rights."}', 'Not enough rights.'],
  ['{"detail":[{"loc":["query","from"],"msg":"no time"}]}', '{"loc":["query","from"],"msg":"no time"}'],
  ['["a","b"]', 'a; b'],
  ['[{"message":"edition is too large"}]', 'edition is too large'],
  ['{"fault":{"faultstring":"no such path"}}', '{"faultstring":"no such path"}'],
  [
    '{"type":"about:blank","title":"Bad Request","status":400,"detail":"edition is too large","instance":"/x"}',
    'Bad Request; edition is too large',
  ],
  [
    '{"title":"One or more validation errors occurred.","errors":{"title":["is blank"]}}',
    '{"title":["is blank"]}; One or more validation errors occurred.',
  ],
])('the message of an error is read from a common form: %s', (body, text) => {
  expect(message(body)).toEqual({ code: undefined, text });
});

it.each([
  ['{"code":601,"message":"the token has expired"}', 601],
  ['{"code":"429","message":"slow down"}', 429],
  ['{"error":{"code":429,"message":"quota exceeded"}}', 429],
  ['{"errors":[{"status":"429","detail":"too many"}]}', 429],
])('the message of an error has a code that is the same in every answer: %s', (body, code) => {
  expect(message(body).code).toBe(code);
});

it.each([`{"errors":["601: ${TEXT}"]}`, `<error>601: ${TEXT}</error>`, `601: ${TEXT}`])(
  'the message of an error has a code in its text: %s',
  (body) => {
    expect(message(body)).toEqual({ code: 601, text: `601: ${TEXT}` });
  },
);

it('the message of an error has the code 601 even if the access token is a part of its words', () => {
  const hideTok = hiding(() => ['token']);
  const found = messageIn(JSON.stringify(`601: ${TEXT}`), hideTok);
  expect(found).toEqual({ code: 601, text: '601: The access [secret] has expired' });
});

it('the message of an error has at most 200 characters for each text', () => {
  expect(message(JSON.stringify('x'.repeat(1_000))).text).toHaveLength(200);
});

it.each([
  ['many texts', { errors: Array.from({ length: 60_000 }, () => 'abc') }],
  ['long texts', { errors: Array.from({ length: 100 }, () => 'x'.repeat(9_000)) }],
  ['objects', { errors: Array.from({ length: 100 }, () => ({ ['n'.repeat(9_000)]: 'a' })) }],
])('the message of an error has at most 4,000 characters in total for %s', (_name, body) => {
  const { text } = message(JSON.stringify(body));
  expect(text.length).toBeGreaterThan(100);
  expect(text.length).toBeLessThanOrEqual(4_000);
});

it.each([
  ['{"error":true,"vbid":"A"}', 'true'],
  ['{"vbid":"A","errors":["","price 2 ignored"]}', 'price 2 ignored'],
  ['<response><error>boom</error></response>', 'boom'],
  ['<error/>', ''],
  ['<licenses><errors><error reference="r"/></errors></licenses>', ''],
])('an answer with a good status has an error: %s', (body, text) => {
  expect(errorInResult(body)?.text).toBe(text);
});

it.each([
  '{"vbid":"A","code":"12345","description":"A book"}',
  '{"vbid":"A","subjects":[{"code":"611"}]}',
  '{"vbid":"A","errors":[]}',
  '{"vbid":"A","error":null,"errors":""}',
  '{"vbid":"A","error":false}',
  '<licenses><errors/></licenses>',
  '<response><code>200</code><message>OK</message></response>',
  '{"status":200}',
  '{"status":"active"}',
])('an answer with a good status has no error: %s', (body) => {
  expect(errorInResult(body)).toBeUndefined();
});
