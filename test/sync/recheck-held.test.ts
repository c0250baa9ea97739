import { expect, it } from 'vitest';
import type { FetchTask } from '../../src/catalog/page.ts';
import { systemClock } from '../../src/clock.ts';
import type { PageQueue } from '../../src/queue/queue.ts';
import type { Reader } from '../../src/store/reader.ts';
import { recheck } from '../../src/sync/recheck-held.ts';
import { lookupOfText } from '../support/page.ts';

it('does not look up held products called . or ..', async () => {
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
        await take({ kind: 'captured', captured: { task, page } } as never);
      }
    },
  };
  const store = { incarnation: 'm', removals } as unknown as Reader;
  expect(
    await recheck(store, 1, { queue: queue as PageQueue, clock: systemClock, signal: new AbortController().signal }),
  ).toEqual([3]);
  expect(asked).toEqual(['C', 'A']);
});
