// @module-tag slow
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { emptyMirror, serve } from '../http/place.ts';
import { browserAvailable, useBrowser } from '../support/browser.ts';

const token = 'right-and-secret';

describe.skipIf(!browserAvailable)('signing in with a browser', { tags: ['stores'] }, () => {
  const visit = useBrowser();

  it('signing in leads back to the page, follows links of other sites, and ends in every window', async () => {
    const { web } = await serve(emptyMirror(), { token });
    const { page, problems } = await visit();
    await page.goto(`${web.url}/runs`);
    await page.getByLabel('Token').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('This token is wrong').waitFor();
    // The browser writes the status of a refused form to its console.
    expect(problems.filter((problem) => !problem.includes('401'))).toEqual([]);
    problems.length = 0;
    await page.getByLabel('Token').fill(token);
    await page.getByLabel('Your name').fill('Anna <b>');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Signed in as Anna <b>').waitFor();
    expect(new URL(page.url()).pathname).toBe('/runs');
    expect(await page.evaluate('document.cookie')).toBe('');

    // A page of another site: the browser withholds the cookie at first.
    const other = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html').end(`<a href="${web.url}/sinks">a link</a>`);
    }).listen(0, '127.0.0.1');
    onTestFinished(() => other.close().closeAllConnections());
    await once(other, 'listening');
    await page.goto(`http://localhost:${(other.address() as AddressInfo).port}/`);
    await page.getByRole('link', { name: 'a link' }).click();
    await page.getByRole('heading', { level: 1, name: 'Sinks' }).waitFor();

    const second = await page.context().newPage();
    await second.goto(web.url);
    await second.getByRole('button', { name: 'Sign out' }).click();
    await second.getByLabel('Token').waitFor();
    // The other window follows the sinks no more.
    await page.getByText('signed out; reload this page to sign in').waitFor();
    await page.reload();
    await page.getByLabel('Token').waitFor();
    // The browser writes to its console that the stream was cut and then refused.
    expect(problems.filter((problem) => !/401|ERR_INCOMPLETE_CHUNKED_ENCODING/.test(problem))).toEqual([]);
    problems.length = 0;
  });
});
