import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/sandbox/journal.ts';
import { repeatAll } from '../../src/sandbox/keeping.ts';

const entry = (at: number): Entry => ({ at, change: { kind: 'control', path: '/_sandbox/mutate', body: {} } });

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
