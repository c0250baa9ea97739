import { createServer } from 'node:http';
import { CatchwordError } from '@catchword/base/errors';
import { serveUntil } from '@catchword/base/lifecycle';
import { listen } from '@catchword/testing/listen';
import { expect, it, onTestFinished } from 'vitest';
import { until, withAck } from '../../src/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { books, numbers, relayOf, temporaryMirror } from './feeding.ts';
import { jsonlTarget } from './targets.ts';

/** A file that is removed at the end of the test. */
async function fileTarget() {
  const target = await jsonlTarget();
  onTestFinished(() => target.remove());
  return target;
}

function config(name: string, url: string) {
  return sinkConfig({ env: `CATCHWORD_SINK_${name}`, name, url, secret: undefined });
}

it('feeds the others while one does not answer, one is unreachable and one is misconfigured', async () => {
  const harness = temporaryMirror();
  const silent = createServer(() => {});
  const port = await listen(silent);
  const good = await Promise.all([fileTarget(), fileTarget(), fileTarget()]);
  const relay = relayOf(harness.store, [
    ...good.map(({ url }, index) => config(`good${index}`, url)),
    config('silent', `webhook+http://127.0.0.1:${port}/#allow=private&timeout=110`),
    config('nowhere', 'redis://127.0.0.1:1'),
    config('wrong', 'jsonl:/dev/null/changes.jsonl'),
  ]);
  onTestFinished(async () => {
    silent.closeAllConnections();
    await relay.stop();
  });
  for (let round = 1; round <= 5; round++) {
    harness.change(books(500, round));
    const last = harness.store.changes.lastSeq();
    await until('the good sinks have everything', () =>
      good.every((_, index) => harness.store.sinks.get(`good${index}`)?.cursor === last),
    );
  }
  await until('the bad sinks have failed', () =>
    ['nowhere', 'wrong'].every((name) => typeof harness.store.sinks.get(name)?.error === 'string'),
  );
  for (const target of good) expect((await target.read()).products).toEqual(harness.living());
  expect(harness.store.sinks.get('silent')).toMatchObject({ cursor: 0, state: 'running' });
  expect(harness.store.sinks.get('nowhere')).toMatchObject({ cursor: 0, state: 'running', error: expect.any(String) });
  expect(harness.store.sinks.get('wrong')).toMatchObject({ cursor: 0, state: 'running', error: expect.any(String) });
});

it('takes over when the other relay of the mirror has stopped, and not before', async () => {
  const harness = temporaryMirror();
  const target = await fileTarget();
  const first = relayOf(harness.store, [config('file', target.url)]);
  const second = relayOf(harness.store, [config('file', target.url)]);
  onTestFinished(() => second.stop());
  harness.change(books(10, 1));
  await until('the first delivers', () => harness.store.sinks.get('file')?.cursor === 10);
  await first.stop();
  harness.change(books(10, 2));
  await until('the second delivers', () => harness.store.sinks.get('file')?.cursor === 20);
  expect((await target.read()).seqs).toEqual(numbers(1, 20));
});

it('ends when the mirror cannot be written, so that it is restarted', async () => {
  const harness = temporaryMirror();
  const target = await fileTarget();
  harness.change(books(3, 1));
  const fails = (): never => {
    throw new CatchwordError('MIRROR_WRITE_FAILED', 'writing the mirror failed: disk is full');
  };
  const relay = relayOf(withAck(harness.store, fails), [config('full', target.url)]);
  onTestFinished(() => relay.stop());
  await expect(serveUntil(new AbortController().signal, [relay])).rejects.toMatchObject({
    code: 'MIRROR_WRITE_FAILED',
  });
});
