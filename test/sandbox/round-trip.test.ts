import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runHere } from '../support/in-process.ts';
import { catalogOf, settingsFor, temporaryDirectory } from '../support/mirror.ts';
import { NEW, put } from './asset-requests.ts';
import { firstItem, getPage, sandboxFor } from './client.ts';

interface Event {
  readonly subject: string;
  readonly data: {
    readonly op: string;
    readonly product: Readonly<Record<string, unknown>> | null;
    readonly changed?: readonly string[];
  };
}

it('4.1, 4.4: the mirror and its change log follow an asset that is created, changed and withdrawn', async () => {
  const sandbox = await sandboxFor({ items: 30 });
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  const env = settingsFor(sandbox.url, db);
  const sync = async () => {
    const { code, stderr } = await runHere(['sync'], env, directory);
    expect([code, stderr]).toEqual([0, expect.any(String)]);
  };
  await sync();
  const own = await firstItem(sandbox);
  const steps: readonly (readonly [string, object])[] = [
    [
      'L-999-70031',
      { ...NEW, kind: 'book', prices: [{ currency: 'USD', type: 'digital_list_price', amount: '9.50' }] },
    ],
    ['L-999-70031', { title: 'Tides and Currents' }],
    ['L-999-70031', { off_sale_date: '2001-01-01' }],
    [own.vbid, { title: 'Renamed' }],
  ];
  for (const [vbid, body] of steps) {
    expect((await put(sandbox, vbid, body)).errors).toEqual([]);
    await sync();
  }
  const { stdout } = await runHere(['changes', '--after', '30'], env, directory);
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Event);
  expect(events.map(({ subject, data }) => [subject, data.op, data.product?.title])).toEqual([
    ['L-999-70031', 'created', 'Tides'],
    ['L-999-70031', 'updated', 'Tides and Currents'],
    ['L-999-70031', 'updated', 'Tides and Currents'],
    [own.vbid, 'updated', 'Renamed'],
  ]);
  expect(events[0]?.data.product).toMatchObject({ variants: [{ prices: [{ value: 9.5, currency: 'USD' }] }] });
  expect(events[2]?.data.product).toMatchObject({ distributable: false, off_sale_date: '2001-01-01' });
  const { items } = await getPage(sandbox);
  const mirrored = catalogOf(db);
  for (const item of items) expect(JSON.parse(mirrored.get(item.vbid) ?? 'null')).toEqual(item);
  expect(mirrored.size).toBe(31);
});
