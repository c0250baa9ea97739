import { expect, it } from 'vitest';
import { emptyMirror, serve } from './place.ts';

it.each(['/runs', '/nothing-here'])('a page is compressed if the browser accepts it: %s', async (path) => {
  const { web } = await serve(emptyMirror());
  const ask = async (encoding: string, method = 'GET') => {
    const headers = { accept: 'text/html', 'accept-encoding': encoding };
    const response = await fetch(web.url + path, { method, headers });
    const of = (name: string): string | null => response.headers.get(name);
    const [length, encoded, vary] = [Number(of('content-length')), of('content-encoding'), of('vary')];
    return { length, encoded, vary, status: response.status, text: await response.text() };
  };
  const [plain, zipped, head] = [await ask('identity'), await ask('gzip, br'), await ask('gzip', 'HEAD')];
  expect(plain).toMatchObject({ encoded: null, vary: 'accept-encoding', length: Buffer.byteLength(plain.text) });
  expect(zipped).toMatchObject({ encoded: 'gzip', vary: 'accept-encoding', status: plain.status, text: plain.text });
  expect(zipped.length).toBeLessThan(plain.length);
  expect(head).toMatchObject({ encoded: 'gzip', length: zipped.length, status: plain.status, text: '' });
});

it('a page loads the scripts that draw only where something is drawn', async () => {
  const { web } = await serve(emptyMirror());
  const html = await (await fetch(`${web.url}/products`)).text();
  expect(html).toContain('/page.js"');
  expect(html).not.toMatch(/uplot\.js|runs\.js/);
});
