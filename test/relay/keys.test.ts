import { expect, it, onTestFinished } from 'vitest';
import { feeding } from './feeding.ts';
import { KINDS } from './target-kinds.ts';

/** Keys that a store could take for one another, and the longest one. */
const KEYS = ['a', 'A', 'a ', 'é', 'e\u0301', 'ß', 'ss', '🙂', '🙃', 'ü'.repeat(255), `${'ü'.repeat(254)}u`];

/** The example writes files, whose names may not be as long. */
const STORES = KINDS.filter(({ name, isAvailable }) => isAvailable && name !== 'example');

for (const kind of STORES) {
  it(`each key has a product of its own in ${kind.name}`, { tags: [...kind.tags] }, async () => {
    const server = await kind.start();
    onTestFinished(() => server.stop());
    const { harness, target, config } = await feeding(kind.prepare(server.port, kind.variants[0] ?? ''));
    harness.start(config);
    await harness.deliver(KEYS.map((vbid, at) => ({ vbid, body: JSON.stringify({ vbid, at }) })));
    await harness.deliver(
      KEYS.map((vbid, at) => ({ vbid, body: at % 2 === 0 ? null : JSON.stringify({ vbid, at, new: 1 }) })),
    );
    expect(harness.living().size).toBe(5);
    const { products } = await target.read();
    expect(products).toEqual(harness.living());
  });
}
