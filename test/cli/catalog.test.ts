import { sandboxFor, truth } from '@catchword/testing/sandbox-for';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { KEY, TOKEN } from '../../packages/client/test/connection.ts';
import { serveJson } from '../../packages/client/test/support.ts';
import { runHere } from '../support/in-process.ts';
import { expectFailure } from './failure.ts';

function catalog(url: string, args: readonly string[], more: Record<string, string> = {}) {
  const keys = { CATCHWORD_API_KEY: KEY, CATCHWORD_ACCESS_TOKEN: TOKEN, CATCHWORD_RATE_LIMIT: 'off' };
  return runHere(['catalog', ...args], { CATCHWORD_BASE_URL: url, ...keys, ...more }, temporaryDirectory());
}

const SANDBOX = { CATCHWORD_API_KEY: 'SANDBOXKEY', CATCHWORD_ACCESS_TOKEN: 'sandboxtoken' };

it('catalog prints every product as the service sent it, without a mirror', async () => {
  const sandbox = await sandboxFor({ items: 25, details: true });
  const ended = await catalog(sandbox.url, ['--per-page', '10'], SANDBOX);
  expect(ended.code).toBe(0);
  expect(ended.stderr).toMatch(/^3 pages of 3, 25 of 25 products, answered at [\d-]+ [\d:]+ UTC\n$/);
  const lines = ended.stdout.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(await truth(sandbox));
  const second = await catalog(sandbox.url, ['--per-page', '10', '--page', '2'], SANDBOX);
  expect(second.stdout.trimEnd().split('\n')).toEqual(lines.slice(10, 20));
  expect(second.stderr).toContain('1 page of 3, 10 of 25 products');
  expect(sandbox.requests).toHaveLength(4);
});

it('catalog --from prints what changed since, withdrawn products too', async () => {
  const sandbox = await sandboxFor({ items: 25 });
  const from = new Date().toISOString();
  sandbox.catalog.mutate({ update: 2, remove: 1, seed: 1 });
  const { stdout } = await catalog(sandbox.url, ['--from', from], SANDBOX);
  const items = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly distributable?: boolean });
  expect(items).toHaveLength(3);
  expect(items.filter(({ distributable }) => distributable === false)).toHaveLength(1);
});

it('catalog prints items that a mirror would reject, one a line', async () => {
  const items = '[{"vbid":\n"a"},{"title":"no key","edition":1.50},"text"]';
  const { url, asked } = await serveJson(() => ({
    body: `{"num_items":3,"page":1,"per_page":1000,"total_pages":1,"items":${items}}`,
  }));
  const settings = { CATCHWORD_INCLUDE_DETAILS: 'subjects', CATCHWORD_CURRENCY: 'EUR' };
  const { code, stdout } = await catalog(url, ['--until', '2026-01-02'], settings);
  expect([code, stdout]).toEqual([0, '{"vbid": "a"}\n{"title":"no key","edition":1.50}\n"text"\n']);
  const query = new URL(asked[0]?.url ?? '', url).searchParams;
  expect(Object.fromEntries(query)).toEqual({
    page: '1',
    per_page: '1000',
    until: '2026-01-02T00:00:00.000Z',
    include_details: 'subjects',
    currency: 'EUR',
  });
});

it('catalog says that pages do not agree, and how far it came before an error', async () => {
  const page = (n: number, total: number) => ({
    body: { num_items: total, page: n, per_page: 1, total_pages: total, items: [{ vbid: String(n) }] },
  });
  const grown = await serveJson((_asked, before) => page(before + 1, before === 0 ? 2 : 3));
  const ended = await catalog(grown.url, ['--per-page', '1', '--json']);
  expect(ended).toMatchObject({ code: 0, stdout: '{"vbid":"1"}\n{"vbid":"2"}\n{"vbid":"3"}\n' });
  expect(ended.stderr).toContain('\nThe totals of the pages differ:');
  const short = await serveJson(() => ({ body: { ...page(1, 3).body, total_pages: 1 } }));
  expect((await catalog(short.url, ['--per-page', '1'])).stderr).toMatch(/^1 page of 1, 1 of 3 products.*\nThe totals/);
  const broken = await serveJson((_asked, before) => (before < 2 ? page(before + 1, 9) : { status: 401, body: '' }));
  const stopped = await catalog(broken.url, ['--per-page', '1']);
  expect(stopped).toMatchObject({ code: 2, stdout: '{"vbid":"1"}\n{"vbid":"2"}\n' });
  expect(stopped.stderr).toContain('answered 401, after 2 pages [SOURCE_AUTH]');
});

it('catalog asks again for a page that is another one', async () => {
  const page = { num_items: 1, per_page: 1000, total_pages: 1, items: [{ vbid: 'a' }] };
  const { url, asked } = await serveJson((_asked, before) => ({ body: { ...page, page: before === 0 ? 2 : 1 } }));
  expect(await catalog(url, [])).toMatchObject({ code: 0, stdout: '{"vbid":"a"}\n' });
  expect(asked).toHaveLength(2);
});

it.each([
  [{ status: 401, body: '' }, 2, 'SOURCE_AUTH'],
  [{ status: 503, body: '' }, 75, 'SOURCE_UNAVAILABLE'],
  [{ status: 429, headers: { 'retry-after': '90000' }, body: '' }, 75, 'SOURCE_RATE_LIMITED'],
  [{ body: { items: [] } }, 1, 'PAGE_INVALID'],
])('catalog has the errors and exit codes of sync: %j', async (reply, code, name) => {
  const { url } = await serveJson(() => reply);
  const ended = await catalog(url, []);
  expect(ended).toMatchObject({ code, stdout: '' });
  expect(ended.stderr).toContain(`[${name}]`);
});

it.each([
  [['--from', 'yesterday'], '--from'],
  [['--page', '0'], '--page'],
  [['--per-page', '1001'], '--per-page'],
  [['--from', '2026-01-02', '--until', '2026-01-01'], '--until is before --from'],
])('catalog rejects %j before the request', async (args, message) => {
  const { url, asked } = await serveJson(() => ({}));
  expectFailure(await catalog(url, args), 2, message);
  expect(asked).toEqual([]);
});
