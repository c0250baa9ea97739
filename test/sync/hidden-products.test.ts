import { expect, it } from 'vitest';
import { runHere } from '../support/in-process.ts';
import { catalogOf } from '../support/mirror.ts';
import { bodies, isDelta, numbered, rawPlace } from './raw-place.ts';

it('a list whose pages come short because products are hidden is read twice, and lookups remove what is gone', async () => {
  const books = bodies(numbered(560));
  const { source, directory, db, settings, run } = await rawPlace(books, {
    CATCHWORD_PER_PAGE: '100',
    CATCHWORD_DELTA_OVERLAP: '0s',
    CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid',
  });
  let gone = '';
  source.instead = (asked) => {
    const vbid = asked.pathname.split('/').at(3);
    if (vbid !== undefined) return vbid === gone ? { status: 404 } : { status: 200, body: `{"vbid":"${vbid}"}` };
    if (isDelta(asked)) return null;
    const [page = 1, perPage = 1] = ['page', 'per_page'].map((name) => Number(asked.searchParams.get(name)));
    // Every ninetieth product is hidden, after the page was cut.
    const shown = source.items
      .slice((page - 1) * perPage, page * perPage)
      .filter((body) => !/[05]7"/.test(body.toString()));
    const pages = Math.ceil(source.items.length / perPage);
    const totals = `"num_items":${source.items.length},"page":${page},"per_page":${perPage},"total_pages":${pages}`;
    return { status: 200, body: `{${totals},"items":[${shown.join(',')}]}` };
  };
  await run();
  gone = 'B3';
  source.items = books.filter((_, at) => at !== 3);
  const before = source.requests.length;
  const ended = await run();
  expect(ended).toMatchObject({ state: 'complete', proof: 'open', removed: 1 });
  expect(ended.reasons.join()).toContain('the source contradicts itself');
  const lists = source.requests.slice(before).filter((asked) => !isDelta(asked) && asked.searchParams.has('page'));
  // Seven windows, each of them twice, and the one behind the end.
  expect(lists).toHaveLength(15);
  expect(catalogOf(db).has(gone)).toBe(false);
  expect((await runHere(['run', '2'], settings, directory)).stdout).toContain('With CATCHWORD_LOOKUP_PATH, products');
});
