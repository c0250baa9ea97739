import { expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../src/log.ts';
import { checkCron, startScheduler } from '../../src/schedule/scheduler.ts';

const log = createLog('silent');

/** What a schedule names that fires every second. */
function ticksIn(timezone: string): readonly string[] {
  const seen: string[] = [];
  const scheduler = startScheduler({
    ...{ fullCron: 'off', deltaCron: '* * * * * *', timezone, log },
    onTick: async (kind, tick) => {
      expect(kind).toBe('delta');
      seen.push(tick);
    },
  });
  onTestFinished(() => scheduler.stop());
  return seen;
}

it('names the same moment alike on two machines', async () => {
  const here = ticksIn('UTC');
  const there = ticksIn('Asia/Kolkata');
  // On a busy machine either may miss a moment that the other names.
  await expect.poll(() => here.filter((tick) => there.includes(tick)).length).toBeGreaterThan(1);
  for (const ticks of [here, there]) {
    for (const tick of ticks) expect(tick).toMatch(/^delta@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/);
    expect(new Set(ticks).size).toBe(ticks.length);
  }
});

it('takes five fields, six fields and off, and nothing else', () => {
  for (const good of ['0 2 * * *', '*/5 * * * * *', 'off']) expect(() => checkCron('X', good)).not.toThrow();
  for (const bad of ['', 'hourly', '0 25 * * *', '* * *']) {
    expect(() => checkCron('CATCHWORD_FULL_CRON', bad)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
  }
});
