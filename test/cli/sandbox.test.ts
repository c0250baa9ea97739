// @module-tag service
import { once } from 'node:events';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { CREDENTIALS } from '@catchword/testing/sandbox-for';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { createClient } from 'catchword-client/client';
import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
import { contextWith } from '../support/in-process.ts';

function run(...flags: string[]) {
  const stdout = new PassThrough({ encoding: 'utf8' });
  const stopping = new AbortController();
  const argv = ['sandbox', '--port', '0', ...flags];
  const program = createProgram(contextWith({ stdout, signal: stopping.signal }), argv);
  const done = program.then((command) => command.parseAsync(argv, { from: 'user' }));
  const stop = async (): Promise<void> => {
    stopping.abort();
    await done;
  };
  onTestFinished(() => stop().catch(() => {}));
  return { stdout, stop, done };
}

/** Starts a sandbox. @returns what it prints first, and its address */
async function started(...flags: string[]) {
  const { stdout, stop } = run(...flags);
  const [text] = (await once(stdout, 'data')) as [string];
  return { text, url: /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0] ?? '', stop };
}

/** Sends the requests of the printed curl lines. */
async function answersOf(text: string): Promise<[number, string][]> {
  const lines = text.split('\n').filter((line) => line.startsWith('curl '));
  expect(lines).toHaveLength(3);
  const answers: [number, string][] = [];
  for (const line of lines) {
    const options = [...line.matchAll(/-(H|d|X) (?:'([^']*)'|(\S+))/g)].map(([, flag, quoted, bare]) => ({
      flag,
      value: quoted ?? bare ?? '',
    }));
    const given = (flag: string) => options.find((option) => option.flag === flag)?.value;
    const headers = options.filter(({ flag }) => flag === 'H').map(({ value }) => value.split(': '));
    const body = given('d');
    const response = await request(/'(http[^']*)'$/.exec(line)?.[1] ?? '', {
      method: (given('X') ?? 'GET') as 'GET',
      headers: Object.fromEntries(headers) as Record<string, string>,
      ...(body !== undefined && { body }),
    });
    answers.push([response.statusCode, await response.body.text()]);
  }
  return answers;
}

it('catchword sandbox prints how to use it, serves, and stops with the signal', async () => {
  const { text, url, stop } = await started('--items', '12');
  expect(text).toContain('API key SANDBOXKEY, access token sandboxtoken');
  expect(text).toContain('export CATCHWORD_RATE_LIMIT=off');
  expect(text).toContain(`export CATCHWORD_BASE_URL=${url}\n`);
  expect(text).toContain(
    `curl -s -H 'X-Service-API-Key: SANDBOXKEY' -H 'X-Service-Access-Token: sandboxtoken' -H 'Content-Type: application/json' '${url}/v4/products?per_page=2'`,
  );
  expect(text).toContain('sandbox-reader, who has that token, and user-0000001 to user-0001000\n');
  expect(text).toContain('export CATCHWORD_USER_REFERENCE=sandbox-reader\n');
  const response = await request(`${url}/v4/products?per_page=2`, { headers: CREDENTIALS });
  expect(await response.body.json()).toMatchObject({ num_items: 12, total_pages: 6 });
  await stop();
  await expect(request(url)).rejects.toThrow();
});

it.each([['--details'], ['--strict']])(
  'catchword sandbox prints three curl lines that work: catalog, asset, licenses (%s)',
  async (...flags) => {
    const answers = await answersOf((await started('--items', '12', ...flags)).text);
    expect(answers).toEqual([
      [200, expect.stringMatching(/^\{"num_items":12,/)],
      [200, expect.stringMatching(/^\{"vbid":"L-999-70031",.*"title":"Tides"/)],
      [200, expect.stringContaining('<license ')],
    ]);
  },
);

it.each([
  [[], true],
  [['--details'], true],
  [['--no-details'], false],
  [['--lean'], false],
])('catchword sandbox serves detailed or lean products: %j', async (flags, detailed) => {
  const { url } = await started('--items', '12', '--json', ...flags);
  const response = await request(`${url}/v4/products?per_page=1`, { headers: CREDENTIALS });
  const { items } = (await response.body.json()) as { items: Record<string, unknown>[] };
  expect(Object.keys(items[0] ?? {}).includes('title')).toBe(detailed);
  expect(items[0]).toHaveProperty('identifiers');
});

it('catchword sandbox names users that exist', async () => {
  const { text, url, stop } = await started('--items', '12', '--users', '3');
  const [, reader = '', last = ''] = /: (\S+), who has that token, and user-0000001 to (\S+)\n/.exec(text) ?? [];
  const client = createClient({ baseUrl: url, apiKey: 'SANDBOXKEY' });
  const results = await client.credentials.verify([reader, last, 'user-0000004']);
  expect(results).toMatchObject([{ ok: true, accessToken: 'sandboxtoken' }, { ok: true }, { ok: false, code: 603 }]);
  await client.close();
  await stop();
  expect((await started('--users', '0')).text).toContain('sandbox-reader, who has that token\n');
});

it('catchword sandbox prints the current tokens after a reset', async () => {
  const db = join(temporaryDirectory(), 'sandbox.ndjson');
  const flags = ['--items', '12', '--db', db];
  const first = await started(...flags, '--json');
  const { url, apiKey, accessToken, other } = JSON.parse(first.text);
  for (const [key, token] of [
    [apiKey, accessToken],
    [other.apiKey, other.accessToken],
  ]) {
    const headers = { 'X-Service-API-Key': key, 'X-Service-Access-Token': token };
    const reset = await request(`${url}/v3/users/reset_access.xml`, { method: 'POST', headers });
    expect(reset.statusCode).toBe(200);
    await reset.body.dump();
  }
  await first.stop();

  const second = await started(...flags, '--json');
  const about = JSON.parse(second.text);
  const client = createClient({ baseUrl: about.url, apiKey });
  const otherClient = createClient({ baseUrl: about.url, apiKey: other.apiKey });
  const verified = [
    ...(await client.credentials.verify(['sandbox-reader'])),
    ...(await otherClient.credentials.verify(['other-reader'])),
  ];
  await Promise.all([client.close(), otherClient.close()]);
  expect(verified).toMatchObject([{ accessToken: about.accessToken }, { accessToken: about.other.accessToken }]);
  expect([about.accessToken, about.other.accessToken]).not.toContain(accessToken);
  expect(about.other.accessToken).not.toBe(other.accessToken);
  expect(about.environment.CATCHWORD_ACCESS_TOKEN).toBe(about.accessToken);
  await second.stop();

  const answers = await answersOf((await started(...flags)).text);
  expect(answers.map(([status]) => status)).toEqual([200, 200, 200]);
  expect(answers[2]?.[1]).toContain('<license ');
});

it('catchword sandbox keeps changes with --db, and calls private addresses with --allow-private-callbacks', async () => {
  const db = join(temporaryDirectory(), 'sandbox.ndjson');
  const put = async (url: string) => {
    const callback = { url: 'https://files.example.org/a.pdf', callback_url: url };
    const body = JSON.stringify({ imprint_id: 1, title: 'Tides', ...callback });
    const headers = { 'X-Service-API-Key': 'SANDBOXKEY' };
    const response = await request(`${url}/v4/assets/L-1`, { method: 'PUT', headers, body });
    return [response.statusCode, ((await response.body.json()) as { created?: string }).created];
  };
  const received: unknown[] = [];
  for (const more of [['--allow-private-callbacks'], ['--allow-private-callbacks'], []]) {
    const { url, stop } = await started('--items', '12', '--json', '--db', db, ...more);
    received.push(await put(url));
    await stop();
  }
  expect(received).toEqual([[200, expect.any(String)], received[0], [422, undefined]]);
  await expect(run('--items', '13', '--db', db).done).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('items 12, not 13'),
  });
});

it('catchword sandbox prints one JSON document', async () => {
  const about = JSON.parse((await started(...'--json --rate-limit 50/min --churn 2/s --details'.split(' '))).text);
  expect(about).toMatchObject({
    url: `http://127.0.0.1:${about.port}`,
    apiKey: 'SANDBOXKEY',
    accessToken: 'sandboxtoken',
    items: 10_000,
    environment: { CATCHWORD_BASE_URL: about.url, CATCHWORD_RATE_LIMIT: '50/min' },
  });
});

it('catchword sandbox takes the names of headers and paths, and prints the settings for them', async () => {
  const names = ['--api-key-header', 'X-Key', '--access-token-header', 'X-Token'];
  const { text, url } = await started('--items', '12', ...names, '--books-path', '/books', '--packages-path', '/sets');
  const environment = Object.fromEntries(
    [...text.matchAll(/^export (\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  );
  expect(environment).toMatchObject({
    CATCHWORD_API_KEY_HEADER: 'X-Key',
    CATCHWORD_ACCESS_TOKEN_HEADER: 'X-Token',
    CATCHWORD_BOOKS_PATH: '/books',
    CATCHWORD_PACKAGES_PATH: '/sets',
  });
  expect((await answersOf(text)).map(([status]) => status)).toEqual([200, 200, 200]);
  expect((await request(`${url}/v4/products`, { headers: CREDENTIALS })).statusCode).toBe(401);
  expect((await request(`${url}/books/L-999-70031`, { headers: { 'X-Key': 'SANDBOXKEY' } })).statusCode).toBe(200);
  expect((await started('--items', '12')).text).not.toContain('_HEADER=');
});

it.each([
  ['--api-key-header', 'a b'],
  ['--books-path', 'books'],
  ['--items', '-1'],
  ['--items', '99999999'],
  ['--seed', 'x'],
  ['--port', '65536'],
  ['--latency', '1s'],
  ['--rate-limit', '50'],
  ['--rate-limit', '0/s'],
  ['--churn', '5/min'],
  ['--order', 'title'],
  ['--faults', 'gremlins:0.1'],
  ['--users', '10000001'],
])('catchword sandbox rejects %s %s', async (flag, value) => {
  await expect(run(flag, value).done).rejects.toMatchObject({
    code: 'USAGE',
    message: expect.stringContaining(flag),
    hint: expect.any(String),
  });
});
