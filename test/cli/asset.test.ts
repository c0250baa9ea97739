import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { INTERNAL_FIELDS, PUBLIC_FIELDS } from 'catchword-client/assets/asset-request';
import { expect, it } from 'vitest';
import { KEY, TOKEN } from '../../packages/client/test/connection.ts';
import { type JsonReply, serveJson } from '../../packages/client/test/support.ts';
import { run } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { expectFailure } from './failure.ts';

/** Runs a command against a service that gives one reply. */
async function against(reply: JsonReply, args: readonly string[], file?: string | Buffer, env = {}) {
  const server = await serveJson(() => reply);
  const directory = temporaryDirectory();
  if (file !== undefined) writeFileSync(join(directory, 'fields.json'), file);
  const settings = { CATCHWORD_BASE_URL: server.url, CATCHWORD_API_KEY: KEY, CATCHWORD_ACCESS_TOKEN: TOKEN };
  // Only a process of its own has a stdin.
  const how = args.includes('-') ? run : runHere;
  const ended = await how(args, { ...settings, CATCHWORD_RATE_LIMIT: 'off', ...env }, directory);
  expect(`${ended.stdout}${ended.stderr}`).not.toContain(KEY);
  const sent = server.asked.map(({ method, url, body }) => {
    return { method, url, body: body === '' ? null : (JSON.parse(body) as unknown) };
  });
  return { ...ended, sent };
}

/** The options that set these fields. */
function sets(...fields: readonly string[]): string[] {
  return fields.flatMap((field) => ['--set', field]);
}

const LATIN1 = Buffer.from('{"title":"\xe9t\xe9"}', 'latin1');

// @rule 1-4
it('asset creates an asset without a vbid, prints the identifier and says to store it', async () => {
  const set = sets('imprint_id=5', 'title=A = B', 'prices=[{"currency":"USD","type":"list","amount":"9.90"}]');
  const ended = await against({ body: { vbid: '9781402894626', title: 'A = B' } }, ['asset', 'put', ...set]);
  expect(ended.stdout).toMatch(/^created 9781402894626 A = B\n.*store it/);
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  const body = { imprint_id: 5, title: 'A = B', prices: [{ currency: 'USD', type: 'list', amount: '9.90' }] };
  expect(ended.sent).toEqual([{ method: 'PUT', url: '/v4/assets', body }]);
});

it('asset saves the fields of the file, overridden by --set', async () => {
  const file = JSON.stringify({ title: 'Old', edition: 2, related_products: { next_edition: 'n' } });
  const set = sets('title=123', 'related_products.previous_edition=p', 'identifiers.e_isbn_10=null');
  const args = ['asset', 'put', 'a', '--file', 'fields.json', ...set, '--json'];
  const ended = await against({ body: { vbid: 'a', more: 1 } }, args, file);
  expect(JSON.parse(ended.stdout)).toEqual({ vbid: 'a', asset: { vbid: 'a', more: 1 } });
  const related_products = { next_edition: 'n', previous_edition: 'p' };
  const body = { title: '123', edition: 2, related_products, identifiers: { e_isbn_10: null } };
  expect(ended.sent).toEqual([{ method: 'PUT', url: '/v4/assets/a', body }]);
});

it.each([
  [['asset', 'put', 'a'], undefined, /no field is given/],
  [['asset', 'put', '--set', 'title=A'], undefined, /imprint_id: missing/],
  [['asset', 'put', 'a', '--create', '--set', 'title=A'], undefined, /imprint_id: missing/],
  [['asset', 'put', 'a', '--set', 'titel=A'], undefined, /titel: unknown field.*\n.*title/],
  [['asset', 'put', 'a', '--set', 'custom=true'], undefined, /custom: .*internal systems/],
  [['asset', 'put', 'a', '--set', 'edition'], undefined, /not of the form name=value/],
  [['asset', 'put', 'a', '--set', '__proto__.title=A'], undefined, /__proto__: unknown field/],
  [['asset', 'put', 'a', '--file', 'none.json'], undefined, /cannot read none.json \(ENOENT\)/],
  [['asset', 'put', 'a', '--file', 'fields.json'], '{"title":', /fields.json is not JSON/],
  [['asset', 'put', 'a', '--file', 'fields.json'], '["title"]', /is not a JSON object/],
  [['asset', 'put', 'a', '--file', 'fields.json'], LATIN1, /fields.json: it is not UTF-8/],
  [['package', 'update', 'P', '--file', 'fields.json'], LATIN1, /fields.json: it is not UTF-8/],
  [['asset', 'put', 'a', '--file', '-'], undefined, /stdin is not JSON/],
  [['asset', 'put', 'a', '--set', 'edition=null'], undefined, /edition: "null"/],
  [['asset', 'put', '..', '--set', 'title=A'], undefined, /the vbid would lead to another address/],
  [['package', 'create', 'P', '--set', 'sku=Q'], undefined, /another SKU than P/],
  [['package', 'update', 'P', '--set', 'products=A'], undefined, /products: "A"/],
])('asset rejects %j before the request', async (args, file, said) => {
  const ended = await against({}, args, file);
  expectFailure(ended, 2, said);
  expect(ended.sent).toEqual([]);
});

const NULLED = ['off_sale_date', 'on_sale_date', 'publication_date'];
const NULLS = [...NULLED, 'sales_rights.not_for_sale', 'title'].map((name) => `${name}=null`);
const REMOVED = Object.fromEntries(NULLED.map((name) => [name, null]));

it.each([
  ['internal fields with --allow-internal', ['--allow-internal', ...sets('custom=true')], { custom: true }],
  [
    'null for a date, and in a text field as text',
    sets(...NULLS),
    { ...REMOVED, sales_rights: { not_for_sale: null }, title: 'null' },
  ],
  [
    'digits in parts of a field as text',
    sets('related_products.next_edition=9780306406157'),
    { related_products: { next_edition: '9780306406157' } },
  ],
])('asset put sends %s', async (_what, args, body) => {
  const ended = await against({ body: { vbid: 'a' } }, ['asset', 'put', 'a', ...args]);
  expect(ended).toMatchObject({ code: 0, stdout: 'saved a\n', stderr: '' });
  expect(ended.sent).toEqual([{ method: 'PUT', url: '/v4/assets/a', body }]);
});

const PUT = ['asset', 'put', 'a', '--set', 'title=A'];

it.each([
  [PUT, 403, ['no rights'], /SERVICE_FORBIDDEN.*\n.*Content owners only/],
  [PUT, 422, ['title: no', 'kind: no'], /title: no; kind: no.*SERVICE_INVALID/],
  [['asset', 'get', 'unknown'], 404, ['Book not found'], /unknown is not known.*Book not found.*NOT_FOUND/],
  [['package', 'get', 'P'], 404, ['Product P not found'], /package P is not known/],
])('7: the command %j explains an answer of %i, and exits with 1', async (args, status, errors, said) => {
  expectFailure(await against({ status, body: { errors } }, args), 1, said);
});

it('asset prints an asset without control characters', async () => {
  const body = { vbid: 'a', title: 'A\u001b[2J' };
  const ended = await against({ body }, ['asset', 'get', 'a']);
  expect(ended.stdout).toMatch(/^a A \[2J\n\{\n/);
  expect(ended.stdout).not.toContain('\u001b');
  const json = await against({ body }, ['asset', 'get', 'a', '--json']);
  expect(JSON.parse(json.stdout)).toEqual(body);
  expect(json.sent).toEqual([{ method: 'GET', url: '/vital_books/a', body: null }]);
});

it.each([
  [{ body: '' }, /without a vbid/],
  [{ body: { vbid: 'b', title: 'B' } }, /answered with b instead of a/],
])('asset put does not call %j saved', async (reply, said) => {
  const ended = await against(reply, ['asset', 'put', 'a', ...sets('title=A')]);
  expectFailure(ended, 1, said);
  expect(ended.stderr).toContain('Check whether it was done before you retry.');
});

it('asset put takes an answer that names the asset by another of its identifiers', async () => {
  const body = { vbid: 'L-1', isbn_canonical: '9780306406157' };
  const ended = await against({ body }, ['asset', 'put', '0-306-40615-2', ...sets('title=A')]);
  expect(ended).toMatchObject({ code: 0, stdout: 'saved L-1\n' });
});

it('asset put sends what it does not know with --force', async () => {
  const set = sets('future=1', 'later=["a"]', 'on=true', 'sales_rights.exclusive_rights=["EMEA"]', 'imprint_id=5');
  const refused = await against({}, ['asset', 'put', 'a', ...set]);
  expectFailure(refused, 2, /"EMEA".*future: unknown field[^\n]*\n.*--force/);
  const ended = await against({ body: { vbid: 'a' } }, ['asset', 'put', 'a', ...set, '--force']);
  const body = { future: '1', later: ['a'], on: true, sales_rights: { exclusive_rights: ['EMEA'] }, imprint_id: 5 };
  expect(ended.sent).toEqual([{ method: 'PUT', url: '/v4/assets/a', body }]);
});

it('asset put lists every field in its help, and which are required', async () => {
  const { stdout } = await runHere(['asset', 'put', '--help'], {}, temporaryDirectory());
  for (const field of [...Object.keys(PUBLIC_FIELDS), ...Object.keys(INTERNAL_FIELDS)]) {
    expect(stdout).toMatch(new RegExp(`\\b${field}\\b`));
  }
  expect(stdout).toMatch(/imprint_id and\s+title are required/);
});

it('book creates, changes and shows a book', async () => {
  const created = await against({ body: { vbid: 'L-1', title: 'A' } }, ['book', 'put', ...sets('title=A', 'any=1')]);
  expect(created.stdout).toMatch(/^created L-1 A\n.*store it/);
  expect(created.sent).toEqual([{ method: 'POST', url: '/vital_books', body: { title: 'A', any: '1' } }]);
  const saved = await against({ body: '<book><vbid>L-1</vbid><title>B</title></book>' }, [
    'book',
    'put',
    'L-1',
    ...sets('prices=[]'),
  ]);
  expect(saved).toMatchObject({ code: 0, stdout: 'saved L-1 B\n' });
  expect(saved.sent).toEqual([{ method: 'PUT', url: '/vital_books/L-1', body: { prices: [] } }]);
  const empty = await against({ body: '' }, ['book', 'put', 'L-1', ...sets('title=B')]);
  expect(empty.stdout).toBe('sent the change of L-1; the service accepted it with an empty answer\n');
  const shown = await against({ body: { vbid: 'L-1' } }, ['book', 'get', 'L-1', '--json']);
  expect(shown.stdout).toBe('{"vbid":"L-1"}\n');
});

it('package creates, updates, gets and deletes', async () => {
  const create = ['package', 'create', 'P', ...sets('name=Bundle', 'products=["A"]')];
  const created = await against({ body: { sku: 'P' } }, create);
  expect(created.stdout).toMatch(/^created package P\n/);
  const odd = await against({ body: { sku: 'P\u001b[2J' } }, create);
  expectFailure(odd, 1, String.raw`answered with package P\u001b[2J instead of P`);
  expect(odd.stderr).not.toContain('\u001b');
  const body = { name: 'Bundle', products: ['A'], sku: 'P' };
  expect(created.sent).toEqual([{ method: 'POST', url: '/v4/packages', body }]);
  const update = ['package', 'update', 'P', '--file', 'fields.json', '--json'];
  const updated = await against({ body: { sku: 'P' } }, update, '{"products":["B"]}');
  expect(JSON.parse(updated.stdout)).toEqual({ sku: 'P' });
  expect(updated.sent).toEqual([{ method: 'PUT', url: '/v4/packages/P', body: { products: ['B'] } }]);
  const read = await against({ body: { sku: 'P', x: 1 } }, ['package', 'get', 'P', '--json']);
  expect(JSON.parse(read.stdout)).toEqual({ sku: 'P', x: 1 });
});

it('package delete prints what the service answers, and no more', async () => {
  const empty = await against({ body: '' }, ['package', 'delete', 'P']);
  const accepted = 'sent the deletion of package P; the service accepted it with an empty answer\n';
  expect(empty).toMatchObject({ code: 0, stdout: accepted });
  expect(empty.sent).toEqual([{ method: 'DELETE', url: '/v4/packages/P/assets', body: null }]);
  const remove = ['package', 'delete', 'P', ...sets('products=["A"]')];
  const none = await against({ body: { removed_count: 0 } }, remove);
  expect(none.stdout).toBe('sent the deletion of package P; the service answered:\n{\n  "removed_count": 0\n}\n');
  expect(none.sent[0]?.body).toEqual({ products: ['A'] });
  const json = await against({ body: { removed_count: 0 } }, ['package', 'delete', 'P', '--json']);
  expect(json.stdout).toBe('{"removed_count":0}\n');
});

it('package does not claim that an empty answer changed a package', async () => {
  const ended = await against({ body: '' }, ['package', 'update', 'P', ...sets('name=B')]);
  expect(ended.stdout).toBe('sent the update of package P; the service accepted it with an empty answer\n');
});

it('9: package takes the paths of books and packages from the environment', async () => {
  const env = { CATCHWORD_BOOKS_PATH: '/v4/books', CATCHWORD_PACKAGES_PATH: '/sets' };
  const book = await against({ body: {} }, ['asset', 'get', 'a'], undefined, env);
  const set = await against({ body: {} }, ['package', 'get', 'P'], undefined, env);
  expect([book, set].map(({ sent }) => sent[0]?.url)).toEqual(['/v4/books/a', '/sets/P']);
  const wrong = await against({}, ['asset', 'get', 'a'], undefined, { CATCHWORD_BOOKS_PATH: 'books?' });
  expectFailure(wrong, 2, /CATCHWORD_BOOKS_PATH: "books\?" cannot be used/);
});
