import { expect, it } from 'vitest';
import { systemClock } from '../src/clock.ts';
import type { Logger } from '../src/log.ts';
import { createTrouble } from '../src/trouble.ts';

const SECOND = 1_000;

/** A trouble whose clock and log the test controls. */
function scene() {
  let now = 1_000_000;
  const lines: string[] = [];
  const note =
    (level: string): Logger['warn'] =>
    ({ reason, failures }, message) =>
      void lines.push(`${level} ${message}: ${reason} (${failures})`);
  const log = {
    debug: note('debug'),
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
    fatal: note('fatal'),
  };
  const trouble = createTrouble({ clock: { ...systemClock, now: () => now }, log, wrong: 'fails', over: 'works' });
  return {
    lines,
    trouble,
    pass: (ms: number): void => {
      now += ms;
    },
  };
}

it('logs a reason when it begins, once a minute with the failures since, and when it is over', () => {
  const { lines, trouble, pass } = scene();
  for (let second = 0; second < 130; second++) {
    for (let times = 0; times < 100; times++) trouble.failed('FULL', { reason: 'FULL of jobs' });
    pass(SECOND);
  }
  expect(lines).toEqual([
    'warn fails: FULL of jobs (1)',
    'warn fails: FULL of jobs (6000)',
    'warn fails: FULL of jobs (6000)',
  ]);
  trouble.passed();
  expect([lines.length, trouble.current()]).toEqual([3, ['FULL']]);
  pass(60 * SECOND);
  expect(trouble.current()).toEqual([]);
  trouble.passed();
  trouble.passed();
  expect(lines.slice(3)).toEqual(['info works: FULL of jobs (13000)']);
  trouble.failed('FULL', { reason: 'FULL again' });
  expect(lines.slice(4)).toEqual(['warn fails: FULL again (1)']);
});

it('takes a reason that comes and goes for one, and tells two reasons apart', () => {
  const { lines, trouble, pass } = scene();
  for (let second = 0; second < 50; second++) {
    trouble.failed('FULL', { reason: 'FULL' });
    trouble.passed();
    trouble.failed('BUSY', { reason: 'BUSY' });
    pass(SECOND);
  }
  expect(lines).toEqual(['warn fails: FULL (1)', 'warn fails: BUSY (1)']);
});

it('goes on logging when the clock is put back', () => {
  const { lines, trouble, pass } = scene();
  trouble.failed('FULL', { reason: 'FULL' });
  pass(-3_600 * SECOND);
  trouble.failed('FULL', { reason: 'FULL' });
  expect(lines).toHaveLength(2);
});
