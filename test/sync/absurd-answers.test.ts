import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { run } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { serveHttp } from '../support/listen.ts';
import { catalogOf, settingsFor, temporaryDirectory } from '../support/mirror.ts';

interface Asked {
  readonly page: number;
  readonly perPage: number;
  /** Whether the whole list is read, not a delta. */
  readonly list: boolean;
  /** Requests so far, this one included. */
  readonly nth: number;
}

interface Source {
  readonly url: string;
  readonly requests: () => number;
}

async function sourceOf(answer: (asked: Asked, response: ServerResponse) => void): Promise<Source> {
  let nth = 0;
  const url = await serveHttp((request, response) => {
    const asked = new URL(request.url ?? '', 'http://localhost').searchParams;
    response.setHeader('content-type', 'application/json');
    const [page, perPage] = [Number(asked.get('page')), Number(asked.get('per_page'))];
    answer({ page, perPage, list: !asked.has('from'), nth: ++nth }, response);
  });
  return { url, requests: () => nth };
}

const MOST = Number.MAX_SAFE_INTEGER;

function page({ page: number, perPage }: Asked, vbids: readonly string[], numItems = MOST): string {
  const items = vbids.map((vbid) => ({ vbid }));
  const pages = Math.ceil(numItems / perPage);
  return JSON.stringify({ num_items: numItems, page: number, per_page: perPage, total_pages: pages, items });
}

const FIVE = ['A', 'B', 'C', 'D', 'E'];

/** A heap large enough for any run, but not for a plan of the claimed products. */
const SMALL_HEAP = { NODE_OPTIONS: '--max-old-space-size=120' };

it('a source that says that it has 2^53 products but shows five, on one short page: the run ends open', async () => {
  const source = await sourceOf((asked, response) => {
    const found = asked.page === 1 && asked.list ? FIVE : [];
    response.end(page(asked, found, asked.list ? MOST : 0));
  });
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  const { code, stdout } = await run(['sync', '--json'], { ...settingsFor(source.url, db), ...SMALL_HEAP }, directory);
  expect([0, 5]).toContain(code);
  const done = JSON.parse(stdout) as { proof: string; reasons: string[]; items: number };
  expect(done).toMatchObject({ proof: 'open', items: 5 });
  expect(done.reasons.join()).toContain('and 5 were read');
  expect(catalogOf(db).size).toBe(5);
  expect(source.requests()).toBeLessThan(400);
});

it.each([
  ['the same five on every page', () => FIVE],
  ['full pages of the same products', ({ perPage }: Asked) => Array.from({ length: perPage }, (_, at) => `V${at}`)],
  ['three pages in turn', ({ page: number }: Asked) => FIVE.map((vbid) => `${vbid}${number % 3}`)],
])('a source that says that it has 2^53 products and shows %s fails, and says why', async (_, shown) => {
  const source = await sourceOf((asked, response) => response.end(page(asked, shown(asked))));
  const directory = temporaryDirectory();
  const settings = { ...settingsFor(source.url, join(directory, 'catalog.db')), ...SMALL_HEAP };
  const { code, stderr } = await run(['sync'], settings, directory);
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('PAGE_INVALID') as string });
  expect(stderr).toContain('goes on without anything new');
  expect(source.requests()).toBeLessThan(400);
});

it.each([
  ['9'.repeat(400), /Retry-After: 9{40}…; catchword waits at most 24 h/],
  ['Mon, 07 Jan 2036 00:00:00 GMT', /Retry-After: Mon, 07 Jan 2036 00:00:00 GMT; catchword waits at most 24 h/],
])('Retry-After of %s is believed for a day, and --now asks again', async (retryAfter, said) => {
  let isBusy = true;
  const source = await sourceOf((asked, response) => {
    if (isBusy) response.writeHead(429, { 'retry-after': retryAfter }).end('{}');
    else response.end(page(asked, asked.page === 1 ? FIVE : [], 5));
  });
  const directory = temporaryDirectory();
  const settings = settingsFor(source.url, join(directory, 'catalog.db'));

  const refused = await runHere(['sync'], settings, directory);
  expect(refused).toMatchObject({ code: 75, stderr: expect.stringMatching(said) as string });
  isBusy = false;
  const asked = source.requests();

  const paused = await runHere(['sync'], settings, directory);
  expect(paused).toMatchObject({
    code: 75,
    stderr: expect.stringContaining('asked for no request before') as string,
  });
  const until = /no request before ([\d-]+ [\d:]+) UTC/.exec(paused.stderr)?.[1] ?? '';
  expect(Date.parse(`${until.replace(' ', 'T')}Z`) - Date.now()).toBeLessThanOrEqual(86_400_000);
  const status = await runHere(['status'], settings, directory);
  expect(status.stdout).toContain(`asks for no request before ${until}`);
  expect(source.requests()).toBe(asked);

  const now = await runHere(['sync', '--now'], settings, directory);
  expect(now).toMatchObject({ code: 0 });
  expect(await runHere(['sync', '--full'], settings, directory)).toMatchObject({ code: 0 });
});
