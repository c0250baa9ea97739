import type { RunKind } from '@catchword/catalog/run-types';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  dueRuns,
  newestDue,
  nextDue,
  plansOf,
  type Schedule,
  ticksBetween,
  upcomingRuns,
} from '../../src/operate/schedule/due.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const FROM = Date.parse('2025-03-01T12:00:00Z');
const YEARS = process.env.CI === undefined ? 1 : 2;
const TO = Date.parse(`${2025 + YEARS}-03-01T12:00:00Z`);
/** Clocks skip an hour at two, an hour at midnight, half an hour, or nothing. */
const ZONES = ['Europe/Berlin', 'America/New_York', 'America/Santiago', 'Australia/Lord_Howe', 'UTC'];

/** Formats a time by the clock of a zone, as `2026-03-08 03:00`. */
function wallClock(timezone: string): (ms: number) => string {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short', timeStyle: 'short' });
  return (ms) => format.format(ms);
}

/** Checks for due runs at these times, serves them and returns them. */
function serve(schedule: Schedule, checks: Iterable<number>): { kind: RunKind; at: number; seenAt: number }[] {
  const served: Record<RunKind, number | null> = { full: FROM, delta: FROM };
  const made: { kind: RunKind; at: number; seenAt: number }[] = [];
  for (const now of checks) {
    for (const { kind, at } of dueRuns(schedule, served, now)) {
      made.push({ kind, at, seenAt: now });
      served[kind] = at;
    }
  }
  return made;
}

/** Times of checks, `minMs` to `maxMs` apart. */
function* checkTimes(minMs: number, maxMs: number, seed: number): Iterable<number> {
  let state = seed;
  for (let now = FROM; now < TO; ) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    now += minMs + Math.floor((state / 2 ** 32) * (maxMs - minMs));
    yield now;
  }
}

describe('every night', () => {
  for (const timezone of ZONES) {
    it(`every night has exactly one full run in ${timezone}`, { tags: ['slow'] }, () => {
      const wall = wallClock(timezone);
      for (const fullCron of ['0 2 * * *', '30 0 * * *']) {
        const made = serve({ fullCron, deltaCron: 'off', timezone }, checkTimes(MINUTE, 4 * HOUR, 7));
        const nights = made.map(({ at }) => wall(at).slice(0, 10));
        const all = [];
        for (let day = FROM + DAY; day < TO - DAY; day += DAY) all.push(wall(day).slice(0, 10));
        expect(new Set(nights).size).toBe(nights.length);
        expect(all.filter((night) => !nights.includes(night))).toEqual([]);
        // Served at the first check after its time.
        expect(made.every(({ at, seenAt }) => seenAt >= at && seenAt - at <= 4 * HOUR)).toBe(true);
      }
    });
  }
});

describe('every hour', () => {
  function hourOf(text: string): number {
    return Number(text.slice(11, 13));
  }

  it.each(ZONES)('every hour has a delta in %s, also an hour that occurs twice', (timezone) => {
    const wall = wallClock(timezone);
    let changes = 0;
    for (let change = FROM; change < TO; change += HOUR) {
      const [before, after] = [wall(change), wall(change + HOUR)];
      if (hourOf(after) === (hourOf(before) + 1) % 24 && before.slice(14) === after.slice(14)) continue;
      changes++;
      const [first, last] = [change - 3 * HOUR, change + 3 * HOUR];
      const made = [];
      let served = first;
      for (let now = first; now <= last; now += 5 * MINUTE) {
        const at = newestDue('0 * * * *', timezone, served, now);
        if (at !== null) made.push(at);
        served = at ?? served;
      }
      const full = [];
      for (let at = first + 5 * MINUTE; at <= last; at += 5 * MINUTE) if (wall(at).endsWith(':00')) full.push(at);
      expect(made).toEqual(full);
    }
    expect(changes).toBe(timezone === 'UTC' ? 0 : 2 * YEARS);
  });
});

describe('a tick', () => {
  it.each([
    // Clocks go forward: right after the skipped hour.
    ['0 2 * * *', 'America/New_York', '2026-03-07T12:00Z', '2026-03-08T07:00Z'],
    ['30 2 * * *', 'America/New_York', '2026-03-07T12:00Z', '2026-03-08T07:00Z'],
    ['0 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', '2026-03-29T01:00Z'],
    ['0 2 * * *', 'Australia/Lord_Howe', '2026-10-03T12:00Z', '2026-10-03T15:30Z'],
    ['0 0 * * *', 'Africa/Cairo', '2026-04-23T12:00Z', '2026-04-23T22:00Z'],
    ['0 2,14 * * *', 'America/New_York', '2026-03-07T20:00Z', '2026-03-08T07:00Z'],
    ['0,30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', '2026-03-29T01:00Z'],
    ['0 0 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', '2026-03-29T01:00Z'],
    // Clocks go back: a time of day fires the first time only, an open hour both times.
    ['0 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', '2026-10-25T00:00Z'],
    ['0 2 * * *', 'Europe/Berlin', '2026-10-25T00:00Z', '2026-10-26T01:00Z'],
    ['0 2 * * *', 'Europe/Berlin', '2026-10-25T00:30Z', '2026-10-26T01:00Z'],
    ['0 2,14 * * *', 'Europe/Berlin', '2026-10-25T00:00Z', '2026-10-25T13:00Z'],
    ['0 * * * *', 'Europe/Berlin', '2026-10-25T00:00Z', '2026-10-25T01:00Z'],
    // A day of the month and a day of the week must both match, as in node-cron.
    ['0 2 13 * 5', 'UTC', '2026-03-13T02:00Z', '2026-11-13T02:00Z'],
  ])('%s in %s follows %s at %s', (cron, timezone, after, expected) => {
    expect(new Date(nextDue(cron, timezone, Date.parse(after)) ?? 0)).toEqual(new Date(expected));
  });

  it('no tick is null', () => {
    expect(nextDue('off', 'UTC', FROM)).toBeNull();
    expect(nextDue('0 2 30 2 *', 'UTC', FROM)).toBeNull();
    expect(newestDue('off', 'UTC', null, FROM)).toBeNull();
  });

  it('a tick does not depend on the time of the check', () => {
    const cron = fc.constantFrom('0 2 * * *', '30 1 * * *', '0 * * * *', '*/15 * * * *', '0 2,14 * * *', '0 3 * * 1');
    const moment = fc.integer({ min: FROM, max: TO });
    fc.assert(
      fc.property(
        cron,
        fc.constantFrom(...ZONES),
        moment,
        fc.integer({ min: 1, max: DAY }),
        (one, zone, at, laterMs) => {
          const next = nextDue(one, zone, at) ?? 0;
          expect(next).toBeGreaterThan(at);
          const asked = Math.min(at + laterMs, next - 1);
          expect(nextDue(one, zone, asked)).toBe(next);
          expect(newestDue(one, zone, at, next - 1)).toBeNull();
          expect(newestDue(one, zone, at, next)).toBe(next);
          expect(newestDue(one, zone, null, next)).toBe(next);
        },
      ),
    );
  });
});

describe('after downtime', () => {
  const schedule = { fullCron: '0 2 * * *', deltaCron: '0 * * * *', timezone: 'Europe/Berlin' };
  const now = Date.parse('2026-11-20T10:30:00Z');

  it('each kind is due once, by its newest tick', () => {
    for (const days of [1, 7, 30, 400]) {
      const served = { full: now - days * DAY, delta: now - days * DAY };
      expect(dueRuns(schedule, served, now)).toEqual([
        { kind: 'full', at: Date.parse('2026-11-20T01:00:00Z') },
        { kind: 'delta', at: Date.parse('2026-11-20T10:00:00Z') },
      ]);
    }
  });

  it('the next runs of both schedules come in their order', () => {
    const runs = upcomingRuns({ ...schedule, deltaCron: '0 */8 * * *' }, now, 5);
    expect(runs.map(({ kind, at }) => `${kind} ${new Date(at).toISOString()}`)).toEqual([
      'delta 2026-11-20T15:00:00.000Z',
      'delta 2026-11-20T23:00:00.000Z',
      'full 2026-11-21T01:00:00.000Z',
      'delta 2026-11-21T07:00:00.000Z',
      'delta 2026-11-21T15:00:00.000Z',
    ]);
    expect(upcomingRuns({ ...schedule, fullCron: 'off', deltaCron: 'off' }, now, 5)).toEqual([]);
  });

  it('a served tick is not due', () => {
    const served = { full: Date.parse('2026-11-20T01:00:00Z'), delta: Date.parse('2026-11-20T10:00:00Z') };
    expect(dueRuns(schedule, served, now)).toEqual([]);
    expect(dueRuns(schedule, served, now + HOUR)).toMatchObject([{ kind: 'delta' }]);
  });

  it('a schedule that fires every second is checked quickly after a year', () => {
    const served = { full: null, delta: now - 366 * DAY };
    const every = { fullCron: 'off', deltaCron: '* * * * * *', timezone: 'Europe/Berlin' };
    expect(dueRuns(every, served, now)).toEqual([{ kind: 'delta', at: now }]);
  });
});

describe('missed ticks', () => {
  const schedule = { fullCron: '0 2 * * *', deltaCron: '0 * * * *', timezone: 'Europe/Berlin' };
  const now = Date.parse('2026-11-20T10:30:00Z');

  it('ticks after the newest served one were missed', () => {
    const served = { full: Date.parse('2026-11-17T01:00:00Z'), delta: Date.parse('2026-11-20T09:00:00Z') };
    expect(plansOf(schedule, served, now)).toEqual({
      nextFull: Date.parse('2026-11-21T01:00:00Z'),
      nextDelta: Date.parse('2026-11-20T11:00:00Z'),
      missedFull: { ticks: 3, from: Date.parse('2026-11-18T01:00:00Z'), upTo: Date.parse('2026-11-20T01:00:00Z') },
      missedDelta: { ticks: 1, from: Date.parse('2026-11-20T10:00:00Z'), upTo: Date.parse('2026-11-20T10:00:00Z') },
      timezone: 'Europe/Berlin',
    });
  });

  it('no tick was missed if all were served, if none ever was, or if one has just come', () => {
    const none = { missedFull: null, missedDelta: null };
    expect(plansOf(schedule, { full: now, delta: now }, now)).toMatchObject(none);
    expect(plansOf(schedule, { full: null, delta: null }, now)).toMatchObject(none);
    const served = { full: now, delta: Date.parse('2026-11-20T10:00:00Z') };
    expect(plansOf(schedule, served, Date.parse('2026-11-20T11:01:00Z'))).toMatchObject(none);
    expect(plansOf(schedule, served, Date.parse('2026-11-20T11:03:00Z'))).toMatchObject({ missedDelta: { ticks: 1 } });
  });

  it('missed ticks are counted up to a limit, and the last is still right', () => {
    const found = ticksBetween('* * * * * *', 'UTC', now - 400 * DAY, now);
    expect(found).toEqual({ ticks: 501, from: now - 400 * DAY + 1000, upTo: now });
    expect(ticksBetween('off', 'UTC', 0, now)).toBeNull();
  });
});

it.each(['0 2 * * *', '*/15 * * * *', '30 4 1,15 * 1', '0 0 29 2 *', '5 6,18 * * 1-5'])(
  'the ticks of %s in UTC, without Intl, are those of the zone',
  (cron) => {
    for (let at = FROM, ticks = 0; ticks < 20; ticks++) {
      const next = nextDue(cron, 'UTC', at) ?? Number.NaN;
      expect(next).toBe(nextDue(cron, 'Etc/UTC', at));
      at = next;
    }
  },
);
