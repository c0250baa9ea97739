import { serveHttp } from '@catchword/testing/listen';
import { execute } from '@catchword/testing/sqlite';
import { expect, it } from 'vitest';
import { heldFacts } from '../../src/report/run-text.ts';
import { requireRun } from '../../src/sync/finish-run.ts';
import { serve } from '../http/place.ts';
import { openedStore } from '../store/opened-store.ts';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { standIn } from '../support/mirror.ts';
import { filled, type Place } from '../support/place.ts';
import { daemonOn } from './daemon.ts';

/** A mirror whose run 2 holds 250 of 2,500 products. */
async function held(more: Record<string, string> = {}): Promise<Place> {
  const here = await filled({ items: 2_500, details: true, withdrawnForMs: 0 }, more);
  here.sandbox.catalog.mutate({ remove: 250, seed: 1 });
  expect(await load(here.settings, 'full')).toMatchObject({ id: 2, state: 'held', proof: 'sealed', missing: 250 });
  return here;
}

const command = ({ settings, directory }: Place, ...args: string[]) => runHere(args, settings, directory);

async function textAt(url: string): Promise<string> {
  return (await (await fetch(url)).text()).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
}

it('a held run says how much of the catalog it would remove, what that has in common, and what its proof means', {
  tags: ['slow'],
}, async () => {
  const here = await held();
  const { stdout } = await command(here, 'run', '2');
  expect(stdout).toContain('Share of the catalog: 10% of 2,500 products\n');
  expect(stdout).toMatch(/Publishers: (?:[A-Z][\w ]+ [\d.]+%, ){5}…\n/);
  expect(stdout).toMatch(/Formats: (?:\w+ [\d.]+%,? ?)+\n/);
  expect(stdout).toContain(`Last changed: ${new Date().toISOString().slice(0, 7)} 100%\n`);
  expect(stdout).toContain('Proof: sealed: catchword read the whole list and overlooked nothing.');
  expect(stdout).toContain('npx catchword runs check 2');
  const { web } = await serve(here.db);
  expect(await textAt(`${web.url}/runs/2`)).toMatch(
    /Share of the catalog 10% of 2,500 products Publishers [A-Z].* Formats \w.* Last changed \d{4}-\d\d 100% Proof sealed: /,
  );
});

it('a check asks the service about 20 of the held products, says what it answered for each, and changes nothing', {
  tags: ['slow'],
}, async () => {
  const here = await held({ CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' });
  const store = openedStore(here.db);
  const gone = store.removals.held(2).map(({ vbid }) => vbid);
  // Of 250 products, each twelfth or thirteenth is asked about.
  const [living = '', withdrawn = ''] = [gone[0], gone[25]];
  const asked: string[] = [];
  const url = await serveHttp((request, response) => {
    const vbid = (request.url ?? '').replace(/\?.*/, '').split('/').at(-1) ?? '';
    asked.push(vbid);
    const isGone = gone.includes(vbid) && vbid !== living && vbid !== withdrawn;
    response.writeHead(isGone ? 404 : 200, { 'content-type': 'application/json' });
    response.end(
      isGone ? '{"errors":["Book not found"]}' : JSON.stringify({ vbid, distributable: vbid !== withdrawn }),
    );
  });
  standIn(here.db, url);
  const other = { ...here, settings: { ...here.settings, CATCHWORD_BASE_URL: url } };
  const checked = await command(other, 'runs', 'check', '2');
  expect(checked).toMatchObject({ code: 0, stderr: '' });
  expect(checked.stdout).toContain('the service was asked about 20 of 250 products: ');
  expect(checked.stdout).toContain(`it has 1 (${living}); it has withdrawn 1 (${withdrawn}); it does not have 18 (`);
  expect(checked.stdout).toContain('reject, and start a full load');
  expect(asked.length).toBe(23);
  expect(store.runs.get(2)).toMatchObject({ state: 'held', removed: 0 });
  expect(store.removals.heldCount(2)).toBe(250);

  const { url: page, decided } = await daemonOn(other);
  expect(await decided('check', '2')).toEqual(['done', checked.stdout.trim()]);
  expect(await textAt(`${page}/runs/2`)).toMatch(/Asked at .* UTC : the service was asked about 20 of 250 products/);
  const json = await command(other, 'runs', 'check', '2', '--json');
  expect(JSON.parse(json.stdout)).toEqual({ run: 2, outcome: checked.stdout.trim() });
});

it('a check needs a path for lookups, and a run that holds removals', { tags: ['slow'] }, async () => {
  const here = await held();
  const unset = await command(here, 'runs', 'check', '2');
  expect(unset).toMatchObject({ code: 2, stdout: '' });
  expect(unset.stderr).toContain('CATCHWORD_LOOKUP_PATH is not set [CONFIG_INVALID]');
  const complete = await command(here, 'runs', 'check', '1');
  expect(complete).toMatchObject({ code: 1, stdout: '' });
  expect(complete.stderr).toContain('run 1 is complete: it does not hold removals [RUN_NOT_ACTIVE]');
});

it('a check of a run whose products were all seen again says so, and asks nothing', async () => {
  const here = await held({ CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' });
  execute(here.db, 'DELETE FROM held_removals');
  const { stdout } = await command(here, 'runs', 'check', '2');
  expect(stdout).toBe('it holds no product any more: all were seen, or removed, since\n');
  expect((await command(here, 'run', '2')).stdout).not.toContain('Publishers');
});

it.each([
  ['approve', 'approved', '250 products that the source no longer has were removed after an operator approved it.'],
  [
    'reject',
    'rejected',
    'An operator rejected the removal of 250 products that it did not see: they stay in the mirror.',
  ],
])(
  'a held run says the same in every place before and after: %s',
  { tags: ['slow'] },
  async (action, verdict, expected) => {
    const here = await held();
    const { web } = await serve(here.db);
    const before = await textAt(`${web.url}/runs/2`);
    expect(before).toContain('The removal of 250 products that it did not see waits for a decision.');
    expect(before).toContain(
      'Held: 250 removals are more than the limit of 100 . Decide about the removals on this page.',
    );
    expect(before).not.toContain('No product had to be removed.');
    expect((await command(here, 'runs')).stdout).toMatch(/^Run 2 +full +needs a decision/m);

    expect((await command(here, action, '2')).code).toBe(0);
    const after = await textAt(`${web.url}/runs/2`);
    expect(after).toContain(expected);
    expect(after).toContain(`Held until ${verdict}: 250 removals are more than the limit of 100 . `);
    expect(after).not.toMatch(/Decide about the removals|No product had to be removed|waits for a decision/);
    expect(after).toMatch(new RegExp(`Run 2 removals ${verdict} sealed`));
    expect(await textAt(`${web.url}/runs`)).toContain(`Run 2 full removals ${verdict} sealed`);
    expect(await textAt(web.url)).toContain(`Full run 2 removals ${verdict} sealed`);
    expect((await command(here, 'runs')).stdout).toMatch(new RegExp(`^Run 2 +full +removals ${verdict}`, 'm'));
    const { stdout } = await command(here, 'run', '2', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      state: 'complete',
      reasons: [`held until ${verdict}: 250 removals are more than the limit of 100`],
    });
  },
);

it('a held run that a later one replaced says so', { tags: ['slow'] }, async () => {
  const here = await held();
  await load(here.settings, 'full');
  const { web } = await serve(here.db);
  const text = await textAt(`${web.url}/runs/2`);
  expect(text).toContain('The removals that it held are outdated: superseded by run 3; nothing was removed.');
  expect(text).not.toMatch(/Decide about the removals|Nothing: it did not read everything/);
});

it('a held run of more than 1,000 products counts what an even sample of them has in common', async () => {
  const here = await held();
  execute(here.db, 'INSERT OR IGNORE INTO held_removals SELECT 2, id FROM products');
  const store = openedStore(here.db);
  const facts = heldFacts(store, requireRun(store, 2), store.removals.heldCount(2));
  expect(facts['Share of the catalog']).toBe('100% of 2,500 products');
  expect(heldFacts(store, requireRun(store, 2), 1)['Share of the catalog']).toBe('0.04% of 2,500 products');
  const formats = store.removals.heldBy.Formats(2, 3);
  expect(formats.reduce((sum, [, products]) => sum + products, 0)).toBe(833);
  expect(facts.Formats).toContain(`${formats[0]?.[0]} ${((100 * (formats[0]?.[1] ?? 0)) / 833).toFixed(1)}%`);
});
