// @module-tag service
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createNumbering } from '@catchword/sandbox/catalog/product-numbers';
import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { sandboxFor } from '@catchword/testing/sandbox-for';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { attributesOf, callerHeaders, control, exchange, verify } from './exchange.ts';

const vbid = (index: number) => createNumbering(1).vbid(index);
const USER = { reference: 'chosen', guid: 'CHOSEN00', access_token: 'chosentoken' };

/** Makes each kind of change to users, licenses and packages; some of them are rejected. */
async function change(sandbox: Sandbox): Promise<void> {
  const create = (elements: string) => exchange(sandbox, 'POST /v3/users.xml', `<user>${elements}</user>`);
  await create('<reference>one</reference><redemption-code>SANDBOX-BOOK-1</redemption-code>');
  await create('<reference>one</reference>');
  await create('<email>ada@example.com</email><password>correct horse</password><last-name>A &amp; B</last-name>');
  await control(sandbox, 'user', USER);
  await control(sandbox, 'grant', { reference: 'chosen', sku: vbid(3), type: 'online', expiration: '2099-12-31' });
  await exchange(sandbox, 'POST /v3/users/reset_access.xml', null, callerHeaders('chosentoken'));
  await control(sandbox, 'expire', { reference: 'user-0000009' });
  await control(sandbox, 'fail', { reference: 'one', code: 474 });
  const json = (body: object) => JSON.stringify(body);
  await exchange(sandbox, 'POST /v4/packages', json({ sku: 'SHELF', name: 'Shelf', products: [vbid(0)] }));
  await exchange(sandbox, 'PUT /v4/packages/SHELF', json({ products: [vbid(1)] }));
  await exchange(sandbox, 'POST /v4/packages', json({ sku: 'GONE', name: 'Gone', products: [] }));
  await exchange(sandbox, 'DELETE /v4/packages/GONE/assets');
}

/** Everything that shows the changes. */
async function seen(sandbox: Sandbox): Promise<string[]> {
  const chosen = callerHeaders((await attributesOf(sandbox, 'chosen')).token);
  const one = callerHeaders((await attributesOf(sandbox, 'one')).token);
  const ninth = callerHeaders((await attributesOf(sandbox, 'user-0000009')).token);
  const answers = [
    await verify(sandbox, '<credential reference="chosen"/>'),
    await exchange(sandbox, 'GET /v3/users.xml/one'),
    await exchange(sandbox, 'GET /v3/users.xml/ada@example.com'),
    await exchange(sandbox, 'GET /v3/licenses.xml', null, chosen),
    await exchange(sandbox, 'GET /v3/licenses.xml', null, callerHeaders('chosentoken')),
    await exchange(sandbox, 'GET /v3/licenses.xml', null, one),
    await exchange(sandbox, 'GET /v3/licenses.xml', null, ninth),
    await exchange(sandbox, 'GET /v4/packages/SHELF'),
    await exchange(sandbox, 'GET /v4/packages/GONE'),
  ];
  return answers.map(({ status, text }) => `${status} ${text}`);
}

/** Creates one more user, which shows that numbers continue. */
async function next(sandbox: Sandbox): Promise<string> {
  return (await exchange(sandbox, 'POST /v3/users.xml', '<user><reference>next</reference></user>')).text;
}

it('users, licenses and packages in a journal are the same after a restart, down to times and tokens', async () => {
  const db = join(temporaryDirectory(), 'sandbox.journal');
  const first = await sandboxFor({ items: 10, db });
  await change(first);
  const before = await seen(first);
  await first.stop();

  const second = await sandboxFor({ items: 10, db });
  expect(await seen(second)).toEqual(before);
  const fresh = await sandboxFor({ items: 10 });
  expect(await seen(fresh)).not.toEqual(before);
  await change(fresh);
  expect(await next(second)).toBe(await next(fresh));
});

it('the journal restores users with unusual passwords, and none that were rejected', async () => {
  const db = join(temporaryDirectory(), 'sandbox.journal');
  const first = await sandboxFor({ items: 0, db });
  const create = (elements: string) => exchange(first, 'POST /v3/users', `<user>${elements}</user>`);
  const created = [
    await create('<reference>empty</reference><password></password>'),
    await create('<reference>both</reference><password>x</password>'),
    await create(`<email>long@example.com</email><password>${'x'.repeat(256)}</password>`),
    await create('<email>none@example.com</email><password/>'),
    await create('<reference>twice</reference><other>1</other><other>2</other>'),
    await create('<reference>last</reference>'),
  ];
  expect(created.map(({ status }) => status)).toEqual([200, 422, 200, 422, 400, 200]);
  const names = ['empty', 'both', 'long@example.com', 'none@example.com', 'twice', 'last'];
  const read = (sandbox: Sandbox) =>
    Promise.all(names.map(async (name) => (await exchange(sandbox, `GET /v3/users/${name}`)).text));
  const before = await read(first);
  await first.stop();
  expect(await read(await sandboxFor({ items: 0, db }))).toEqual(before);
});

it('the journal records no element without a meaning here, such as a password under another name', async () => {
  const db = join(temporaryDirectory(), 'sandbox.journal');
  const sandbox = await sandboxFor({ items: 0, db });
  const secrets = ['password-confirmation', 'Password', 'password'].map((name) => `<${name}>open sesame</${name}>`);
  const user = `<user><email>a@example.com</email>${secrets.join('')}</user>`;
  expect((await exchange(sandbox, 'POST /v3/users', user)).status).toBe(200);
  const kept = readFileSync(db, 'utf8');
  expect(kept).toContain('a@example.com');
  expect(kept).not.toContain('open sesame');
});
