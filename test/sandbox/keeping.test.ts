import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Entry } from '../../src/sandbox/journal/journal.ts';
import { SANDBOX_DEFAULTS } from '../../src/sandbox/options.ts';
import { keepHoldings, repeatAll } from '../../src/sandbox/replay.ts';
import { temporaryDirectory } from '../support/mirror.ts';

const entry = (at: number): Entry => ({ at, change: { kind: 'control', path: '/_sandbox/mutate', body: {} } });

it.each([
  [
    'threw',
    () => {
      throw new RangeError('Maximum call stack size exceeded');
    },
  ],
  ['was refused', () => ({ status: 422, body: '' })],
])('of a change that %s, nothing is kept', (_what, act) => {
  const db = join(temporaryDirectory(), 'sandbox.ndjson');
  const keeping = keepHoldings({ ...SANDBOX_DEFAULTS, items: 1, db }, systemClock, AbortSignal.abort());
  onTestFinished(() => keeping.close());
  const { change } = entry(1);
  keeping.record(change, () => ({ status: 200, body: '' }));
  const before = readFileSync(db, 'utf8');
  try {
    keeping.record(change, act);
  } catch (error) {
    expect(error).toBeInstanceOf(RangeError);
  }
  expect(readFileSync(db, 'utf8')).toBe(before);
});

describe('changes that are done again', () => {
  it('go on after one that fails, as they did the first time', () => {
    const done: number[] = [];
    repeatAll([entry(1), entry(2), entry(3)], ({ at }) => {
      if (at === 2) throw new RangeError('Maximum call stack size exceeded');
      done.push(at);
    });
    expect(done).toEqual([1, 3]);
  });

  it('stop where one cannot be read', () => {
    function* damaged(): Iterable<Entry> {
      yield entry(1);
      throw new Error('line 3 is damaged');
    }
    expect(() => repeatAll(damaged(), () => {})).toThrow('line 3 is damaged');
  });
});
