import { systemClock } from '@catchword/base/clock';
import type { FetchTask } from '@catchword/catalog/page-types';
import type { PageQueue } from '@catchword/queue/queue-port';
import { lookupOfText } from '@catchword/testing/page';
import { expect, it } from 'vitest';
import type { Reader } from '../../src/store/schema/reader.ts';
import { recheck } from '../../src/sync/recheck-held.ts';

it('a recheck does not look up held products called . or ..', async () => {
  const held = ['.', '..', 'A'].map((vbid, at) => ({ id: at + 1, vbid, title: null }));
  const removals = { held: () => held, controls: () => [{ id: 9, vbid: 'C', title: null }] };
  const asked: (string | undefined)[] = [];
  let take: Parameters<PageQueue['consume']>[0] = async () => {};
  const queue: Pick<PageQueue, 'consume' | 'add' | 'drop'> = {
    drop: async () => {},
    consume: async (consumer) => {
      take = consumer;
    },
    add: async (tasks: readonly FetchTask[]) => {
      for (const task of tasks) {
        asked.push(task.vbid);
        const { vbid = '' } = task;
        const page = lookupOfText(JSON.stringify({ vbid }), vbid, task.window);
        await take({ kind: 'captured', task, page } as never);
      }
    },
  };
  const store = { incarnation: 'm', removals } as unknown as Reader;
  expect(
    await recheck(store, 1, 9, { queue: queue as PageQueue, clock: systemClock, signal: new AbortController().signal }),
  ).toMatchObject({ held: 3, living: [{ id: 3 }], withdrawn: [], gone: [{ id: 1 }, { id: 2 }] });
  expect(asked).toEqual(['C', 'A']);
});
