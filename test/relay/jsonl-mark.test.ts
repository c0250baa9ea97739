import { expect, it } from 'vitest';
import { markOf } from '../../src/relay/kinds/jsonl/read-tail.ts';

const MARK = { incarnation: 'm', generation: 3, cursor: 10, at: 10, late: 4 };
/** The second generation began at byte 100, when the file had everything up to 6. */
const STATE = { incarnation: 'm', generation: 2, offset: 100, cursor: 6, at: 6 };
const NOTED = { incarnation: 'm', generation: 2, cursor: 6, at: 6, late: 0 };
const end = (cursor: number, incarnation = 'm') => ({ incarnation, cursor, at: cursor });

it.each([
  ['an empty file without a state', null, 0, null, { ...MARK, late: 0 }],
  ['a file that was never replayed', null, 50, end(7), { ...end(7), generation: 1, late: 0 }],
  ['an empty file of the same mirror', STATE, 0, null, { ...MARK, generation: 2, late: 0 }],
  ['an empty file of another mirror', { ...STATE, incarnation: 'o' }, 0, null, { ...NOTED, incarnation: 'o' }],
  ['an empty file that is not behind', { ...STATE, cursor: 11 }, 0, null, { ...NOTED, cursor: 11 }],
  ['a file that lost events of the generation before', STATE, 90, end(5), { ...NOTED, ...end(5) }],
  ['a shorter file whose last event is newer', STATE, 90, end(7), NOTED],
  ['a file without an event of this generation', STATE, 100, end(7), NOTED],
  ['a replay that began with an older event', STATE, 101, end(2), { ...NOTED, late: 2 }],
  ['a replay that is past its beginning', STATE, 200, end(7), { ...NOTED, ...end(7) }],
])('finds how far a file is: %s', (_what, state, size, last, expected) => {
  expect(markOf(MARK, state, size, last)).toEqual(expected);
});
