// @module-tag slow
import { expect, it } from 'vitest';
import { type Figures, live } from './years.ts';
import type { RecordOfYears } from './years-record.ts';
import { DAY, type Incident, START } from './years-world.ts';

const HOUR = 3_600_000;
const HALF_HOUR = HOUR / 2;
/** `YEARS_MONTHS=24 npx vitest run test/operate/years.test.ts` takes many minutes for each zone, and prints figures. */
const MONTHS = Number(process.env.YEARS_MONTHS ?? 2);
const IS_LONG = MONTHS >= 6;
const ALL_ZONES = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'Africa/Casablanca'];
// A minute each.
const ZONES = IS_LONG ? ALL_ZONES : ['Australia/Lord_Howe'];
const RETENTION_DAYS = IS_LONG ? 60 : 8;

/** Each day of the zone, with the first half hour at which its clock shows 02:00 or later; found without croner. */
function* nights(timezone: string, endMs: number): Generator<{ readonly day: string; readonly at: number }> {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short', timeStyle: 'short' });
  let last = format.format(START).slice(0, 10);
  for (let at = START; at < endMs; at += HALF_HOUR) {
    const [day = '', time = ''] = format.format(at).split(' ');
    if (day === last || time < '02:00') continue;
    last = day;
    yield { day, at };
  }
}

/** What disturbed the daemon at some time of a span; also right after it, because a run may start late then. */
function disturbing(incidents: readonly Incident[], fromMs: number, toMs: number): Incident[] {
  return incidents.filter(({ at, lengthMs, kind }) => {
    const longer = kind === 'crash' ? 3 * HOUR : kind === 'outage' ? 3 * HOUR : HOUR;
    return at < toMs && at + lengthMs + longer > fromMs;
  });
}

/** What became of a night: `next` begins the one after it. */
function describeNight(record: RecordOfYears, incidents: readonly Incident[], at: number, next: number) {
  // A clock that is wrong shifts what it shows by this much at most.
  const most = 31 * HOUR;
  const missed = record.missed.find(
    ({ kind, from, upTo }) => kind === 'full' && from <= at + most && upTo >= at - most,
  );
  // A clock that is ahead makes the night's load early.
  const ahead = incidents.filter(
    ({ kind, at: from, lengthMs, shiftMs }) => kind === 'clock ahead' && from < at && at - shiftMs < from + lengthMs,
  );
  const early = ahead.map(({ at: from, shiftMs }) => {
    const tick = Math.max(from, at - shiftMs);
    return record.full.count(tick, tick + 2 * HOUR);
  });
  return {
    made: record.full.count(at, next) + Math.max(0, ...early),
    reason: missed?.reason ?? (record.skippedFull.count(at - most, at + most) > 0 ? 'a run covered it' : null),
  };
}

function print(timezone: string, figures: readonly Figures[]): void {
  for (const { month, runs, heapBytes, rssBytes, descriptors, fileBytes, walBytes, rows } of figures) {
    if (month !== 1 && month % 3 !== 0) continue;
    const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);
    process.stdout.write(
      `${timezone} month ${month}: ${runs} runs, heap ${mb(heapBytes)} MB, RSS ${mb(rssBytes)} MB, ${descriptors} descriptors, file ${mb(fileBytes)} MB, WAL ${mb(walBytes)} MB, rows ${JSON.stringify(rows)}\n`,
    );
  }
}

it.each(ZONES)(
  'a daemon has its full load every night, or a logged reason, and stays flat: %s',
  async (timezone) => {
    const life = await live({
      timezone,
      months: MONTHS,
      seed: 7 + ALL_ZONES.indexOf(timezone),
      runRetentionMs: RETENTION_DAYS * DAY,
    });
    const { record, incidents, figures, endMs } = life;
    if (IS_LONG) print(timezone, figures);
    const all = [...nights(timezone, endMs)];
    const verdicts = { quiet: 0, made: 0, reason: 0 };
    const wrong: unknown[] = [];
    for (const [index, { day, at }] of all.entries()) {
      const next = all[index + 1]?.at;
      // The mirror is filled on the first day, and the last night is not over.
      if (index === 0 || next === undefined) continue;
      const troubles = disturbing(incidents, at - HOUR, next);
      const found = describeNight(record, troubles, at, next);
      const names = troubles.map(
        ({ kind, at: from, lengthMs }) => `${kind} ${new Date(from).toISOString()} ${lengthMs / HOUR} h`,
      );
      if (troubles.length === 0) {
        verdicts.quiet++;
        // At the next look, exactly once; and every hour has its run.
        const hours = [];
        for (let hour = at; hour < next; hour += HOUR) {
          if (record.full.count(hour, hour + HOUR) + record.delta.count(hour, hour + HOUR) === 0) hours.push(hour);
        }
        if (found.made !== 1 || record.full.count(at, at + HALF_HOUR) !== 1) wrong.push({ day, found });
        if (hours.length > 0) wrong.push({ day, hours: hours.map((hour) => new Date(hour).toISOString()) });
      } else if (found.made > 0) verdicts.made++;
      else if (found.reason !== null) verdicts.reason++;
      else wrong.push({ day, found, names });
    }
    if (IS_LONG)
      process.stdout.write(`${timezone}: nights ${JSON.stringify(verdicts)}, incidents ${incidents.length}\n`);
    expect(wrong).toEqual([]);
    expect(verdicts.quiet).toBeGreaterThan(MONTHS * 8);
    expect(verdicts.made).toBeGreaterThan(0);
    // A reason is logged only for what was disturbed.
    const excuses = record.missed.filter(
      ({ from, upTo }) => disturbing(incidents, from - 31 * HOUR, upTo + 31 * HOUR).length === 0,
    );
    expect(excuses).toEqual([]);
    expect(record.unexpected).toEqual([]);
    expect(life.living).toEqual(life.truth);
    expect(life.isSound).toBe(true);

    const early = figures[IS_LONG ? 2 : 0];
    const late = figures.at(-1);
    if (early === undefined || late === undefined) throw new Error('no figures');
    expect(late.runs - early.runs).toBeGreaterThan((MONTHS - (IS_LONG ? 3 : 1)) * 500);
    const { eras: _early, ...earlyRows } = early.rows;
    const { eras, ...lateRows } = late.rows;
    // One for each start of the daemon that recorded a change; receivers may keep an id for any time.
    expect(eras).toBeLessThan(2 * incidents.length + 3);
    for (const [table, rows] of Object.entries(lateRows)) {
      // Runs are deleted a hundred at a time, the newest hundred full runs stay, and some days have more changes.
      // Each failed run of a bad month is kept as long. Without retention, 21 more months would add 15,000 runs.
      // Two months are too short for the number of runs to settle: only the long life shows that it stays the same.
      const margin =
        (IS_LONG ? { runs: 500, passes: 700, changes: 150 } : { runs: 600, passes: 1400, changes: 300 })[table] ?? 20;
      expect(rows, `${table}, ${earlyRows[table]} before`).toBeLessThan((earlyRows[table] ?? 0) + margin);
    }
    expect(late.descriptors).toBeLessThanOrEqual(early.descriptors + 2);
    expect(late.heapBytes).toBeLessThan(early.heapBytes + 8e6);
    expect(late.rssBytes).toBeLessThan(early.rssBytes + 60e6);
    expect(late.walBytes).toBeLessThan(70e6);
    expect(late.fileBytes).toBeLessThan(early.fileBytes + 3e6);
  },
  IS_LONG ? 3_600_000 : 900_000,
);
