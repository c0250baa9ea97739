import { afterAll, beforeAll, describe, it } from 'vitest';
import { sinkChecks } from '../../src/contract/checks.ts';
import { KINDS, type TargetKind } from './target-kinds.ts';

/** Checks that take seconds with a server. */
const LARGE = ['delivers many events and large ones', 'gets what differs when its view is changed, over crashes'];

for (const { name: kind, isAvailable, tags, variants, effectivelyOnce, start, prepare } of KINDS) {
  describe(kind, { tags: [...tags] }, () => {
    let server: Awaited<ReturnType<TargetKind['start']>>;
    beforeAll(async () => {
      if (isAvailable) server = await start();
    });
    afterAll(() => server?.stop());

    describe.skipIf(!isAvailable).each(variants)('with the options %j', (options) => {
      const checks = sinkChecks({ effectivelyOnce, prepare: () => prepare(server.port, options) });
      for (const { name, run } of checks)
        it(name, { tags: kind !== 'jsonl' && LARGE.includes(name) ? ['slow'] : [] }, run);
    });
  });
}
