import { describe, expect, it } from 'vitest';
import { sinkChecks } from '../../src/contract/checks.ts';
import { tryStore } from '../../src/contract/try-store.ts';
import { compared } from '../relay/compared.ts';
import { fed, NEVER } from '../relay/feeding.ts';
import { type Engine, serveEngine } from './engine.ts';
import { createKafka } from './fake-kafka.ts';
import { createMeilisearch } from './fake-meilisearch.ts';
import { createOpenSearch } from './fake-opensearch.ts';
import { createTypesense } from './fake-typesense.ts';

/* The modules for engines that cannot be had here, against doubles that refuse what the engines refuse. */

const SEARCH: Readonly<Record<string, () => Engine>> = {
  opensearch: createOpenSearch,
  meilisearch: createMeilisearch,
  typesense: createTypesense,
};
const ENGINES = { ...SEARCH, kafka: createKafka };

describe.each(Object.entries(ENGINES))('the example for %s', (_, create) => {
  const checks = sinkChecks({ effectivelyOnce: true, prepare: () => serveEngine(create()) });
  for (const { name, run } of checks) it(name, run);
});

describe.each(Object.entries(SEARCH))('sink verify and the example for %s', (_, create) => {
  it('find, name and repair documents that another program has changed', async () => {
    const engine = create();
    const { harness } = await fed(serveEngine(engine), 5);
    engine.tamper?.();
    const found = await compared(harness, { repair: true });
    expect(found).toMatchObject({ differing: 1, missing: 1, extra: 2, repaired: 4, error: null });
    expect(found.examples).toContainEqual({ vbid: 'P1', difference: 'differing', differs: ['JSON'] });
    expect(engine.products()).toEqual(harness.living());
    await harness.deliver([{ vbid: 'P1', body: '{"vbid":"P1","version":2}' }]);
    expect(await compared(harness)).toMatchObject({ differing: 0, missing: 0, extra: 0, same: 5 });
  });

  it('pass sink contract, which removes what each check has left', { tags: ['slow'] }, async () => {
    const { url, secret = '', remove } = await serveEngine(create());
    const slashed = url.replace(/(:\d+)&/, '$1/&');
    const tried = [];
    for await (const one of tryStore({ env: 'SINK', name: 'contract', url: slashed, secret }, NEVER)) tried.push(one);
    await remove();
    expect(tried.filter(({ result }) => result === 'failed')).toEqual([]);
    expect(tried.filter(({ result }) => result === 'passed').length).toBeGreaterThan(10);
  });
});
