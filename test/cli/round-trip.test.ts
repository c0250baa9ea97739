import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { start } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { catalogOf, truthOf } from '../support/mirror.ts';
import { place } from '../support/place.ts';

it('an asset written through the service returns through the catalog, the change log and a sink', {
  tags: ['slow'],
}, async () => {
  const { sandbox, directory, db, settings } = await place({ items: 50 });
  const out = join(directory, 'out.jsonl');
  const env = { ...settings, CATCHWORD_SINK_FILE: `jsonl:${out}`, LOG_LEVEL: 'info' };

  async function catchword(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runHere(args, env, directory);
    expect({ args, code, stderr }).toMatchObject({ code: 0 });
    return stdout;
  }
  async function newest(): Promise<{ subject: string }> {
    const lines = (await catchword('changes')).trimEnd().split('\n');
    return JSON.parse(lines.at(-1) ?? '') as { subject: string };
  }

  await catchword('sync');
  const put = ['asset', 'put', '--json', '--set', 'title=Tides', '--set', 'imprint_id=1'];
  const { vbid } = JSON.parse(await catchword(...put)) as { vbid: string };
  await catchword('sync');
  expect(catalogOf(db).get(vbid)).toBeDefined();
  expect(await newest()).toMatchObject({ subject: vbid, data: { op: 'created', product: { title: 'Tides' } } });

  await catchword('asset', 'put', vbid, '--set', 'title=Tides and Currents');
  await catchword('sync');
  const data = { op: 'updated', product: { title: 'Tides and Currents' }, before: { title: 'Tides' } };
  expect(await newest()).toMatchObject({ subject: vbid, data });

  await catchword('asset', 'put', vbid, '--set', 'off_sale_date=2020-01-01');
  await catchword('sync');
  expect(await newest()).toMatchObject({ subject: vbid, data: { product: { distributable: false } } });

  // The service announces the withdrawal for ten days; until then the mirror keeps the product as not distributable.
  expect(catalogOf(db).size).toBe(51);
  expect((await truthOf(sandbox.url)).size).toBe(50);

  const relay = start(['relay'], env, directory);
  await relay.shows('sink is open');
  await expect
    .poll(async () => JSON.parse(await catchword('sink', 'list', '--json')) as unknown, { timeout: 30_000 })
    .toMatchObject([{ name: 'file', lag_records: 0 }]);
  await relay.stop();
  const lines = readFileSync(out, 'utf8').trimEnd().split('\n');
  const told = lines.map((line) => JSON.parse(line) as { subject: string });
  expect(told.filter(({ subject }) => subject === vbid).at(-1)).toEqual(await newest());
  expect(told).toHaveLength(51);
});
