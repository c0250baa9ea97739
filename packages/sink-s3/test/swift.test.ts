// @module-tag slow
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sinkChecks } from '../../../src/contract/checks.ts';
import { configAt, NEVER } from '../../../test/relay/feeding.ts';
import { bucketTarget } from '../../../test/relay/targets.ts';
import { readBucket } from '../../../test/support/s3-reader.ts';
import { SWIFT_KEY, startSwift, swiftAvailable } from '../../../test/support/swift.ts';

describe.skipIf(!swiftAvailable)('a bucket of OpenStack Swift', { tags: ['stores'] }, () => {
  let swift: Awaited<ReturnType<typeof startSwift>>;
  beforeAll(async () => {
    swift = await startSwift();
  });
  afterAll(() => swift?.stop());

  const secret = `${encodeURIComponent(SWIFT_KEY.id)}:${SWIFT_KEY.secret}`;
  const prepare = () =>
    bucketTarget(swift.port, SWIFT_KEY.region, secret, async (prefix) =>
      readBucket(await swift.objects(prefix.slice('books/'.length)), prefix),
    );

  const checks = sinkChecks({ effectivelyOnce: true, prepare });
  for (const { name, run } of checks) it(name, run);

  it('doctor says that a bucket of Swift is for one relay only', async () => {
    const { url, remove } = await prepare();
    const sink = await configAt(url, secret).make();
    expect(await sink.check(NEVER)).toContain('it has no conditional writes: let one relay only write there');
    await remove();
  });
});
