import { expect, it } from 'vitest';
import { createLog } from '../../src/log.ts';
import { checkCron, startScheduler } from '../../src/schedule/scheduler.ts';

const log = createLog('silent');

/** The first `count` ticks of a schedule that fires every second. */
async function ticks(count: number, timezone = 'UTC'): Promise<string[]> {
  const seen: string[] = [];
  let done = (): void => {};
  const enough = new Promise<void>((resolve) => {
    done = resolve;
  });
  const scheduler = startScheduler({
    ...{ fullCron: 'off', deltaCron: '* * * * * *', timezone, log },
    onTick: async (kind, tick) => {
      expect(kind).toBe('delta');
      seen.push(tick);
      if (seen.length === count) done();
    },
  });
  await enough;
  await scheduler.stop();
  return seen;
}

it('names the same moment alike on two machines', async () => {
  const [here, there] = await Promise.all([ticks(4), ticks(4, 'Asia/Kolkata')]);
  expect(here[0]).toMatch(/^delta@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/);
  expect(new Set(here).size).toBe(4);
  // A busy machine may start one of them in the second after the other.
  const common = here.filter((tick) => there.includes(tick));
  expect(common.length).toBeGreaterThan(1);
  expect(there.filter((tick) => tick >= (common[0] ?? '') && tick <= (common.at(-1) ?? ''))).toEqual(common);
});

it('takes five fields, six fields and off, and nothing else', () => {
  for (const good of ['0 2 * * *', '*/5 * * * * *', 'off']) expect(() => checkCron('X', good)).not.toThrow();
  for (const bad of ['', 'hourly', '0 25 * * *', '* * *']) {
    expect(() => checkCron('CATCHWORD_FULL_CRON', bad)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
  }
});
