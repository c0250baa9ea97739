import { type SandboxOptions, startSandbox } from '@catchword/sandbox/sandbox';
import { createClient } from 'catchword-client/client';
import { expect, it, onTestFinished } from 'vitest';

async function started(options: SandboxOptions = {}) {
  const sandbox = await startSandbox({ items: 20, users: 2, ...options });
  onTestFinished(() => sandbox.close());
  const { url: baseUrl, apiKey, accessToken } = sandbox;
  const reader = { baseUrl, apiKey, accessToken, reference: 'sandbox-reader', rateLimit: 'off' };
  return { sandbox, reader, client: createClient(reader) };
}

it('the sandbox in a test of a user changes its catalog, grants licenses and answers what the test sets', async () => {
  const { sandbox, client } = await started();
  await sandbox.mutate({ create: 3, remove: 1, seed: 1 });
  const products = await sandbox.products();
  expect(products).toHaveLength(22);
  for await (const page of client.catalog.products()) {
    expect(page.products.map(({ product }) => product)).toEqual(products);
  }
  expect(products[0]).toMatchObject({ title: expect.any(String), variants: expect.any(Array) });
  const short = await (await started({ details: false })).sandbox.products();
  expect(short[0]).not.toHaveProperty('title');

  const sku = String(products.at(-1)?.vbid);
  expect(await client.licenses.owns(sku)).toBe(false);
  await sandbox.grant({ reference: 'sandbox-reader', sku, type: 'online' });
  expect(await client.licenses.owns(sku)).toBe(true);

  await sandbox.answer({ operation: 'PUT /v4/assets', status: 422, message: 'title is blank' });
  await expect(client.assets.create({ title: 'A', imprint_id: 1 })).rejects.toThrow('title is blank');
  await client.close();
});

it('the sandbox in a test of a user makes users, and replaces tokens and the key', async () => {
  const { sandbox, reader, client } = await started();
  const { guid, accessToken } = await sandbox.createUser({ reference: 'pupil-7', accessToken: 'pupiltoken' });
  expect(accessToken).toBe('pupiltoken');
  const pupil = createClient({ ...reader, accessToken, reference: 'pupil-7' });
  expect(await pupil.licenses.read()).toMatchObject({ licenses: [] });
  await sandbox.expire({ guid });
  await sandbox.renewKey('NEWKEY');
  expect(sandbox.apiKey).toBe('NEWKEY');
  await expect(client.catalog.product('any')).rejects.toMatchObject({ code: 'SOURCE_AUTH' });
  await Promise.all([pupil.close(), client.close()]);
});

it('the sandbox in a test of a user names what it rejects, and can be closed twice', async () => {
  const { sandbox } = await started();
  const lost = sandbox.grant({ reference: 'unknown', sku: 'A' });
  await expect(lost).rejects.toMatchObject({ code: 'USAGE', message: expect.stringContaining('User not found') });
  const misspelt = { item: 5 } as SandboxOptions;
  await expect(startSandbox(misspelt)).rejects.toThrow('the sandbox has no option item');
  await sandbox.close();
  await sandbox.close();
});

it.each<[SandboxOptions, string]>([
  [{ items: -1 }, 'items: Too small'],
  [{ users: 1.5 }, 'users: Invalid input: expected int'],
  [{ port: 70_000 }, 'port: Too big'],
  [{ order: 'title' as 'id' }, 'order: Invalid option'],
  [{ rateLimit: { maxRequests: 0, windowMs: 1000 } }, 'rateLimit.maxRequests: Too small'],
])('the sandbox in a test of a user refuses the options %j', async (options, message) => {
  await expect(startSandbox(options)).rejects.toMatchObject({
    code: 'USAGE',
    message: expect.stringContaining(message),
  });
});

it('the sandbox in a test of a user takes its default for an option that is undefined', async () => {
  const { sandbox } = await started({ order: undefined as never, items: 3 });
  expect(await sandbox.products()).toHaveLength(3);
});
