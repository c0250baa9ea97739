import { expect, it, onTestFinished, vi } from 'vitest';
import * as z from 'zod';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { contextWith } from '../support/in-process.ts';

const SINKS = '../../src/shown/shown-sink.ts';

/** The sources, as if the rows of a sink had one more. */
async function withMadeUpRow(): Promise<void> {
  vi.resetModules();
  vi.doMock(SINKS, async (original) => {
    const real = await original<typeof import('../../src/shown/shown-sink.ts')>();
    const { schemaOf } = await import('../../src/shown/shown-row.ts');
    const shelf = {
      key: 'shelf',
      label: 'Shelf',
      list: 'column',
      schema: z.string(),
      about: 'Where it stands.',
      value: ({ name }: { name: string }) => `the shelf of ${name}`,
    } as const;
    const SINK = [...real.SINK, shelf] as const;
    return { ...real, SINK, SINK_SCHEMA: schemaOf('Sink', 'A sink.', SINK) };
  });
  onTestFinished(() => {
    vi.doUnmock(SINKS);
    vi.resetModules();
  });
}

it('a row that is added to the rows of a sink is everywhere', { tags: ['slow'] }, async () => {
  await withMadeUpRow();
  const { serveHarness } = await import('../http/place.ts');
  const { store, html, page } = await serveHarness();
  const shop = { name: 'shop', kind: 'webhook', address: 'https://shop.example', identity: 'i' };
  writeUnder(store.relayLease, Date.now(), ({ sinks }) => sinks.configure(shop));

  const { sinkCommand } = await import('../../src/cli/commands/sink-command.ts');
  const printed = async (...options: string[]) => {
    const lines: string[] = [];
    const stdout = Object.assign(contextWith({}).stdout, { write: (text: string) => lines.push(text) > 0 });
    const context = contextWith({
      stdout,
      environment: { CATCHWORD_DB: store.path, CATCHWORD_BASE_URL: 'http://127.0.0.1:1' },
    });
    await sinkCommand(context).parseAsync(['list', ...options], { from: 'user' });
    return lines.join('');
  };
  expect(await printed(), 'the command').toMatch(/^sink .* shelf *\nshop .* the shelf of shop\n/);
  expect(JSON.parse(await printed('--json')), '--json').toMatchObject([{ name: 'shop', shelf: 'the shelf of shop' }]);

  const answer = JSON.parse((await page('/api/sinks')).text) as object[];
  expect(answer, '/api/sinks').toMatchObject([{ name: 'shop', shelf: 'the shelf of shop' }]);
  const { components } = JSON.parse((await page('/openapi.json')).text) as { components: object };
  const described = { schemas: { Sink: { properties: { shelf: { description: 'Where it stands.' } } } } };
  expect(components, '/openapi.json').toMatchObject(described);
  for (const path of ['/sinks', '/sinks/shop']) expect(await html(path), path).toMatch(/Shelf<.*the shelf of shop/s);

  const { withFieldTables } = await import('../docs/field-tables.ts');
  const documented = withFieldTables('<!-- `npm run docs` writes this table: sink -->\n\n');
  expect(documented, 'the documents').toContain('| `shelf` | Shelf | text | Where it stands. |');
});
