import { join } from 'node:path';
import { expect, it } from 'vitest';
import { SANDBOX_DEFAULTS } from '../../src/sandbox/options.ts';
import type { Sandbox } from '../../src/sandbox/sandbox-server.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { CREDENTIALS, get, sandboxFor } from './client.ts';
import { callerHeaders, control } from './exchange.ts';

const PATH = '/v4/products?per_page=1';

async function statusWith(sandbox: Sandbox, key: string, token?: string): Promise<number> {
  return (await get(sandbox, PATH, callerHeaders(token, key))).status;
}

it('POST /_sandbox/key revokes the main key and accepts the new one for the same catalog', async () => {
  const sandbox = await sandboxFor({ items: 3 });
  const before = await get(sandbox, PATH);
  await control(sandbox, 'key', { api_key: 'RENEWED' });
  expect(sandbox.apiKey()).toBe('RENEWED');
  expect(await statusWith(sandbox, 'SANDBOXKEY')).toBe(403);
  expect(await statusWith(sandbox, 'OTHERKEY', 'othersandboxtoken')).toBe(200);
  const after = await get(sandbox, PATH, { ...CREDENTIALS, [SANDBOX_DEFAULTS.apiKeyHeader]: 'RENEWED' });
  expect(after.bytes).toEqual(before.bytes);
});

it('the sandbox keeps a renewed key after a restart', async () => {
  const db = join(temporaryDirectory(), 'sandbox.journal');
  const first = await sandboxFor({ items: 3, db });
  await control(first, 'key', { api_key: 'RENEWED' });
  await first.stop();
  const second = await sandboxFor({ items: 3, db });
  expect([await statusWith(second, 'SANDBOXKEY'), await statusWith(second, 'RENEWED')]).toEqual([403, 200]);
});
