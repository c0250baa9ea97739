import { afterAll, beforeAll, describe, it } from 'vitest';
import { sinkChecks } from '../../src/relay/contract/checks.ts';
import { KINDS, type TargetKind } from './target-kinds.ts';

for (const { name: kind, isAvailable, tags, variants, effectivelyOnce, start, prepare } of KINDS) {
  describe(kind, { tags: [...tags] }, () => {
    let server: Awaited<ReturnType<TargetKind['start']>>;
    beforeAll(async () => {
      if (isAvailable) server = await start();
    });
    afterAll(() => server?.stop());

    describe.skipIf(!isAvailable).each(variants)('with the options %j', (options) => {
      const checks = sinkChecks({ effectivelyOnce, prepare: () => prepare(server.port, options) });
      for (const { name, run } of checks) it(name, run);
    });
  });
}
