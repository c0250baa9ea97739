// @module-tag slow
import { createServer, request } from 'node:http';
import { listen, serveHttp } from '@catchword/testing/listen';
import { describe, expect, it } from 'vitest';
import { serveFilled } from '../http/place.ts';
import { browserAvailable, useBrowser } from '../support/browser.ts';

const token = 'right-and-secret';
const PREFIX = '/shop/mirror';

/** Serves what is at `target` under PREFIX, as nginx does with `location` and `proxy_pass`. @returns the address */
async function proxied(target: string): Promise<string> {
  const server = createServer((asked, answer) => {
    const { url = '', method, headers } = asked;
    if (!url.startsWith(`${PREFIX}/`)) return void answer.writeHead(404).end();
    const passed = { method, headers: { ...headers, 'x-forwarded-prefix': PREFIX } };
    const sent = request(`${target}${url.slice(PREFIX.length)}`, passed, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers);
      got.pipe(answer);
    });
    answer.on('close', () => sent.destroy());
    sent.on('error', () => answer.destroy());
    asked.pipe(sent);
  });
  return `http://127.0.0.1:${await listen(server)}${PREFIX}`;
}

describe.skipIf(!browserAvailable)('a browser behind a proxy', { tags: ['stores'] }, () => {
  const visit = useBrowser();

  it('a browser signs in, reads and signs out under the path of a proxy', async () => {
    const { web } = await serveFilled({ items: 30 }, { token });
    const address = await proxied(web.url);
    const { page, problems } = await visit();
    await page.goto(`${address}/runs`);
    await page.getByLabel('Token').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    expect(page.url()).toBe(`${address}/runs`);
    for (const name of ['Overview', 'Products', 'Changes', 'Sinks', 'Decisions', 'Runs']) {
      await page.getByRole('navigation').getByRole('link', { name }).click();
      await page.getByRole('heading', { level: 1 }).waitFor();
      expect(page.url()).toMatch(new RegExp(`^${address}/`));
    }
    // The stream of live sections is open.
    await expect.poll(() => page.locator('#connection').textContent()).toBe('live');
    await page.getByRole('link', { name: 'Run 1', exact: true }).click();
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(page.url()).toBe(`${address}/runs/1`);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').waitFor();
    expect(page.url()).toBe(`${address}/login`);
    expect(problems).toEqual([]);
  });

  it('a page of a named origin reads the stream with EventSource, one of another origin cannot', async () => {
    const site = () =>
      serveHttp(
        (_request, response) => void response.setHeader('content-type', 'text/html').end('<title>Shop</title>'),
      );
    const [shop, other] = [await site(), await site()];
    const { stream } = await serveFilled({ items: 2 }, { httpOrigins: [shop] });
    const { page, problems } = await visit();
    const read = (from: string) => `new Promise((resolve) => {
      const source = new EventSource(${JSON.stringify(from)});
      source.onmessage = ({ data }) => resolve(JSON.parse(data).sequence);
      source.onerror = () => {
        source.close();
        resolve('refused');
      };
    })`;
    await page.goto(shop);
    expect(await page.evaluate(read(`${stream}?after=0`))).toBe('00000000000000000001');
    await page.goto(other);
    expect(await page.evaluate(read(`${stream}?after=0`))).toBe('refused');
    // The browser writes to its console why it failed, as soon as it can.
    await expect.poll(() => problems.filter((problem) => /CORS|ERR_FAILED/.test(problem)).length).toBe(3);
    problems.length = 0;
  });

  it('a page of a named origin reads the stream with fetch and the token', async () => {
    const shop = await serveHttp(
      (_request, response) => void response.setHeader('content-type', 'text/html').end('<title>Shop</title>'),
    );
    const { stream } = await serveFilled({ items: 2 }, { token, httpOrigins: [shop] });
    const { page } = await visit();
    await page.goto(shop);
    const text =
      await page.evaluate(`fetch('${stream}', { headers: { authorization: 'Bearer ${token}', 'last-event-id': '' } })
      .then(async ({ body }) => new TextDecoder().decode((await body.getReader().read()).value))`);
    expect(text).toMatch(/^(retry|event|id|:)/);
  });
});
