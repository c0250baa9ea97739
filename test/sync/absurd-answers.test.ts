import { expect, it } from 'vitest';
import { run } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { catalogOf } from '../support/mirror.ts';
import { bodies, isDelta, rawPlace } from './raw-place.ts';

const MOST = Number.MAX_SAFE_INTEGER;

interface Asked {
  readonly page: number;
  readonly perPage: number;
}

function askedOf({ searchParams }: URL): Asked {
  return { page: Number(searchParams.get('page')), perPage: Number(searchParams.get('per_page')) };
}

function answerOf({ page, perPage }: Asked, vbids: readonly string[], numItems = MOST) {
  const items = vbids.map((vbid) => ({ vbid }));
  const pages = Math.ceil(numItems / perPage);
  return {
    status: 200,
    body: JSON.stringify({ num_items: numItems, page, per_page: perPage, total_pages: pages, items }),
  };
}

const FIVE = ['A', 'B', 'C', 'D', 'E'];

/** A heap large enough for any run, but not for a plan of the claimed products. */
const SMALL_HEAP = { NODE_OPTIONS: '--max-old-space-size=120' };

it('a source that says that it has 2^53 products but shows five, on one short page: the run ends open', {
  tags: ['slow'],
}, async () => {
  const { source, directory, db, settings } = await rawPlace([], SMALL_HEAP);
  source.instead = (url) => {
    const asked = askedOf(url);
    return isDelta(url) ? answerOf(asked, [], 0) : answerOf(asked, asked.page === 1 ? FIVE : []);
  };
  const { code, stdout } = await run(['sync', '--json'], settings, directory);
  expect([0, 5]).toContain(code);
  const done = JSON.parse(stdout) as { proof: string; reasons: string[]; items: number };
  expect(done).toMatchObject({ proof: 'open', items: 5 });
  expect(done.reasons.join()).toContain('and 5 were read');
  expect(catalogOf(db).size).toBe(5);
  expect(source.requests.length).toBeLessThan(400);
});

it.each([
  ['the same five on every page', () => FIVE],
  ['full pages of the same products', ({ perPage }: Asked) => Array.from({ length: perPage }, (_, at) => `V${at}`)],
  ['three pages in turn', ({ page: number }: Asked) => FIVE.map((vbid) => `${vbid}${number % 3}`)],
])(
  'a source that says that it has 2^53 products and shows %s fails, and says why',
  { tags: ['slow'] },
  async (_, shown) => {
    const { source, directory, settings } = await rawPlace([], { ...SMALL_HEAP, LOG_LEVEL: 'warn' });
    source.instead = (url) => answerOf(askedOf(url), shown(askedOf(url)));
    const { code, stderr } = await run(['sync'], settings, directory);
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('PAGE_INVALID') as string });
    expect(stderr).toContain('goes on without anything new');
    expect(stderr).toMatch(/CATCHWORD_PAGE_PARAM\), or a cache before it ignores them/);
    expect(source.requests.length).toBeLessThan(400);
  },
);

it.each([
  ['9'.repeat(400), /Retry-After: 9{40}…; catchword waits at most 24 h/],
  ['Mon, 07 Jan 2036 00:00:00 GMT', /Retry-After: Mon, 07 Jan 2036 00:00:00 GMT; catchword waits at most 24 h/],
])('Retry-After of %s is believed for a day, and --now asks again', async (retryAfter, said) => {
  let isBusy = true;
  const { source, directory, settings } = await rawPlace(bodies(FIVE), { LOG_LEVEL: 'warn' });
  source.instead = () => (isBusy ? { status: 429, headers: { 'retry-after': retryAfter }, body: '{}' } : null);

  const refused = await runHere(['sync'], settings, directory);
  expect(refused).toMatchObject({ code: 75, stderr: expect.stringMatching(said) as string });
  isBusy = false;
  const asked = source.requests.length;

  const paused = await runHere(['sync'], settings, directory);
  expect(paused).toMatchObject({
    code: 75,
    stderr: expect.stringContaining('asked for no request before') as string,
  });
  const until = /no request before ([\d-]+ [\d:]+) UTC/.exec(paused.stderr)?.[1] ?? '';
  expect(Date.parse(`${until.replace(' ', 'T')}Z`) - Date.now()).toBeLessThanOrEqual(86_400_000);
  const status = await runHere(['status'], settings, directory);
  expect(status.stdout).toContain(`asks for no request before ${until}`);
  expect(source.requests.length).toBe(asked);

  const now = await runHere(['sync', '--now'], settings, directory);
  expect(now).toMatchObject({ code: 0 });
  expect(await runHere(['sync', '--full'], settings, directory)).toMatchObject({ code: 0 });
});
