// @module-tag slow
import { symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/contract/harness.ts';
import { type SinkConfig, sinkConfig } from '../../src/relay/sink-config.ts';
import { runHere } from '../support/in-process.ts';
import { books, temporaryMirror } from './feeding.ts';
import { KINDS, type TargetKind } from './target-kinds.ts';
import { jsonlTarget } from './targets.ts';

/* A sink leaves its store, by another name or address, and another sink takes the store over. */

type Views = Readonly<Record<string, string>>;

/** A mirror of 20 products whose sinks go from one setting to the next. */
function movedMirror() {
  const mirror = temporaryMirror();
  const { store, start, stop } = mirror;

  /** Feeds stores until each sink has everything, then stops. @param targets the address of each sink @param isDone waits for more */
  async function feed(
    targets: Readonly<Record<string, { readonly url: string; readonly secret?: string | undefined }>>,
    views: Views = {},
    isDone = async () => true,
  ) {
    const sinks = Object.entries(targets).map(([name, { url, secret }]): SinkConfig => {
      return sinkConfig({ env: 'SINK', name, url, secret, where: views[name] });
    });
    start(sinks[0] as SinkConfig, { sinks });
    await until('each sink has everything, or fails', () => {
      const rows = store.sinks.list().filter(({ configured }) => configured);
      const isOver = (row: (typeof rows)[0]) =>
        row.state === 'stopped' || (row.generation > 0 && row.cursor === store.changes.lastSeq());
      return rows.length === sinks.length && rows.every(isOver);
    });
    await until('the stores are as they should be', isDone);
    await stop();
    expect(store.sinks.list().map(({ name, error }) => [name, error])).toEqual(
      store.sinks.list().map(({ name }) => [name, null]),
    );
  }

  mirror.change(books(20, 1));
  function rename(from: string, to: string): void {
    store.request(({ sinks }) => sinks.rename(store.sinks.get(from)?.id ?? 0, to));
  }
  return { ...mirror, feed, rename };
}

const fileOf = ({ url }: { readonly url: string }): string => url.replace('jsonl:', '');

async function files() {
  const [one, other] = await Promise.all([jsonlTarget(), jsonlTarget()]);
  onTestFinished(async () => {
    await one.remove();
    await other.remove();
  });
  return [one, other] as const;
}

describe('a sink that moves', () => {
  it('feeds its store when two sinks have exchanged their names', async () => {
    const { feed, rename, change } = movedMirror();
    const [one, other] = await files();
    await feed({ a: one, b: other });
    rename('a', 'tmp');
    rename('b', 'a');
    rename('tmp', 'b');
    change(books(3, 2));
    await feed({ a: other, b: one });
    expect((await one.read()).seqs).toHaveLength(23);
  });

  it('feeds its store under another name while its old name means another store', async () => {
    const { feed, rename, change } = movedMirror();
    const [one, other] = await files();
    await feed({ shop: one });
    rename('shop', 'shop_old');
    change(books(3, 2));
    await feed({ shop_old: one, shop: other });
    expect((await one.read()).seqs).toHaveLength(23);
  });

  it('leaves its store to another sink when it gets a new address, and both take them over again', async () => {
    const { feed, change } = movedMirror();
    const [one, other] = await files();
    await feed({ a: one });
    await feed({ a: other, b: one });
    change(books(3, 2));
    await feed({ a: one, b: other });
    expect((await one.read()).seqs).toHaveLength(23);
    await feed({ c: one });
    await feed({ a: one, c: other });
  });

  it('gets its store back with its parked events', async () => {
    const { feed, rename, refuse, change, store } = movedMirror();
    const [one, other] = await files();
    await feed({ a: one });
    refuse(1, 'a');
    await feed({ a: other });
    rename('a-former', 'old');
    change(books(3, 2));
    await feed({ a: other, old: one });
    expect(store.sinks.parkedCount(store.sinks.get('old')?.id ?? 0)).toBe(2);
  });

  it('is judged by doctor as by the relay, before the relay has the new settings', async () => {
    const { feed, store } = movedMirror();
    const [one, other] = await files();
    await feed({ a: one, b: other });
    const settings = { CATCHWORD_DB: store.path, CATCHWORD_SINK_A: other.url, CATCHWORD_SINK_B: one.url };
    const { stdout } = await runHere(['doctor'], settings, temporaryDirectory());
    expect(stdout).not.toContain('writes here');
    const link = join(temporaryDirectory(), 'link');
    symlinkSync(dirname(fileOf(one)), link);
    const shared = {
      CATCHWORD_DB: store.path,
      CATCHWORD_SINK_A: one.url,
      CATCHWORD_SINK_B: `jsonl:${join(link, basename(fileOf(one)))}`,
    };
    expect((await runHere(['doctor'], shared, temporaryDirectory())).stdout).toContain('the sink a writes here');
  });
});

for (const { name, isAvailable, tags, variants, start, prepare } of KINDS.filter(({ can }) => can.includes('mark'))) {
  describe.skipIf(!isAvailable)(`a store of ${name} that its sink has left`, { tags: [...tags] }, () => {
    let server: Awaited<ReturnType<TargetKind['start']>>;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server.stop());

    async function scene() {
      const target = await prepare(server.port, variants[0] ?? '');
      onTestFinished(() => target.remove());
      const { url, secret } = target;
      const again = {
        url: url.replace(/127\.0\.0\.1(?!.*127\.0\.0\.1)/, 'localhost').replace('jsonl:/', 'jsonl:/./'),
        secret,
      };
      expect(again.url).not.toBe(url);
      return { ...movedMirror(), target, again };
    }

    const ODD = { a: "vbid LIKE 'P1%'" };

    it(`gets what the next sink of ${name} has to have, if the first one had a view`, async () => {
      const { feed, target, again, living } = await scene();
      await feed({ a: target }, ODD);
      await feed({ b: again });
      expect(new Map((await target.read()).products)).toEqual(living());
    });

    it(`gets no more than the view of a sink of ${name} that comes back`, async () => {
      const { feed, target, again, change } = await scene();
      await feed({ a: target }, ODD);
      await feed({ b: again });
      change(books(2, 2));
      // The end of the fill removes the others.
      await feed({ a: target }, ODD, async () => (await target.read()).products.size === 11);
    });

    it(`is not filled again by the next sink of ${name} if both have every product`, async () => {
      const { feed, target, again, change, store } = await scene();
      await feed({ a: target });
      change(books(3, 2));
      await feed({ b: again });
      expect(store.sinks.get('b')?.delivered).toBe(3);
    });
  });
}
