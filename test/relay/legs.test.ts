import type { Opened } from '@catchword/sink-kit/sink';
import { feederName } from '@catchword/sink-kit/stored-mark';
import { execute } from '@catchword/testing/sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SINK_NAME } from '../../src/contract/harness.ts';
import { resume } from '../../src/relay/resume-position.ts';
import { legOf } from '../../src/store/rows/sink-legs.ts';
import type { SinkRow } from '../../src/store/rows/sink-rows.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import type { SinkLeg } from '../../src/store/schema/sink-tables.ts';
import type { RelayWriter } from '../../src/store/schema/writers.ts';
import { books, temporaryMirror } from './feeding.ts';

/* A row for each state of a sink, and each place at which its store may be then. */

/** The mirror has ten changes. */
const LAST = 10;

function leg(what: SinkLeg['what'], generation: number, from: number, to: number, tag: string | null = null): SinkLeg {
  return { what, generation, from, to, where: tag, fields: null, tag };
}

const FIRST = leg('first', 1, 0, 5);
const VIEW = leg('first', 1, 0, 5, 'a');
/** Legs that follow others; `unread` ones start where the store was believed to be. */
const LEGS = {
  'a fill': [FIRST],
  'a fill with a view': [VIEW],
  'a fill of a store with something unknown': [leg('newest', 2, 0, 8)],
  'a replay from a change': [FIRST, leg('changes', 2, 6, 0)],
  'a replay from a change with a view': [VIEW, leg('changes', 2, 6, 0, 'a')],
  'a replay from a change after a difference': [VIEW, leg('difference', 2, 7, 7, 'b'), leg('changes', 3, 8, 0, 'b')],
  'a replay of everything': [leg('replacement', 2, 0, 8)],
  'a changed view': [VIEW, leg('difference', 2, 8, 8, 'b')],
  'a view that was changed twice': [VIEW, leg('difference', 2, 7, 7, 'b'), leg('difference', 3, 8, 8, 'c')],
  'what differs now': [FIRST, leg('difference', 2, 8, 9)],
  'the place of another sink': [leg('changes', 7, 8, 0)],
};

type Place = readonly [generation: number, cursor: number];
type From = 'itself' | 'another sink' | 'another sink with a view' | 'another mirror';

/** A mirror with a sink on these legs. */
function sinkOn(legs: readonly SinkLeg[], [generation, cursor]: Place) {
  const mirror = temporaryMirror();
  onTestFinished(() => mirror.stop());
  mirror.change(books(LAST, 1));
  const { store } = mirror;
  const named = { name: SINK_NAME, kind: 'memory', address: 'memory', identity: 'memory' };
  const write = (work: (writer: RelayWriter) => void): void => writeUnder(store.relayLease, Date.now(), work);
  write(({ sinks }) => sinks.configure(named));
  execute(
    store.path,
    `UPDATE sinks SET generation = ${generation}, cursor = ${cursor}, fill_end = 5, delivered = 1, legs = '${JSON.stringify(legs)}'`,
  );
  const place = ({ what, from, to }: SinkLeg, row: SinkRow): string =>
    `${what} ${from}-${to} at ${row.generation}.${row.cursor}`;
  return { ...mirror, write, shown: () => place(legOf(mirror.sink()), mirror.sink()) };
}

function markOf({ store, sink }: ReturnType<typeof sinkOn>, [generation, cursor]: Place, from: From): Opened {
  const id = from === 'itself' ? sink().id : sink().id + 1;
  const incarnation = from === 'another mirror' ? 'another' : store.incarnation;
  const isWhole = from === 'another sink' || sink().legs.every(({ tag }) => tag === null);
  const feeder = feederName(incarnation, id, isWhole && from !== 'another sink with a view');
  return { incarnation: feeder, generation, cursor, at: store.changes.timeOf(cursor) ?? 0, late: 0 };
}

type Row = readonly [
  legs: keyof typeof LEGS,
  believed: Place,
  store: Place | null,
  from: From,
  then: string,
  what: string,
];

const ROWS: readonly Row[] = [
  ['a fill', [1, 3], null, 'itself', 'first 0-5 at 1.3', 'says nothing'],
  ['a changed view', [2, 0], null, 'itself', 'difference 8-10 at 2.0', 'says nothing: it may have got more'],
  ['a changed view', [2, 8], null, 'itself', 'difference 8-8 at 2.8', 'says nothing, and has begun'],
  ['a fill', [1, 3], [1, 4], 'itself', 'first 0-5 at 1.4', 'is ahead after a crash'],
  ['a fill', [1, 9], [1, 2], 'itself', 'first 0-5 at 1.2', 'was set back'],
  ['a fill', [1, 9], [4, 9], 'itself', 'first 0-5 at 4.9', 'was fed in a later generation'],
  ['a changed view', [2, 9], [2, 3], 'itself', 'difference 8-8 at 2.3', 'was set back into a difference'],
  ['a fill of a store with something unknown', [2, 7], [1, 9], 'itself', 'newest 0-8 at 2.0', 'has not seen it'],
  ['a replay of everything', [2, 0], [1, 9], 'itself', 'replacement 0-8 at 2.0', 'has not seen it'],
  ['a replay from a change', [2, 6], [1, 9], 'itself', 'changes 6-0 at 2.6', 'has not seen it'],
  ['a replay from a change', [2, 6], [1, 3], 'itself', 'changes 6-0 at 2.3', 'has not seen it, and was set back'],
  ['a replay from a change with a view', [2, 6], [1, 3], 'itself', 'newest 0-10 at 3.0', 'was set back into the fill'],
  ['a replay from a change after a difference', [3, 8], [2, 7], 'itself', 'changes 8-0 at 3.7', 'was set back'],
  ['a replay from a change after a difference', [3, 8], [2, 4], 'itself', 'newest 0-10 at 4.0', 'is in the difference'],
  ['a replay from a change after a difference', [3, 8], [1, 9], 'itself', 'newest 0-10 at 4.0', 'is before it'],
  ['a changed view', [2, 0], [1, 8], 'itself', 'difference 8-8 at 2.0', 'has not seen it'],
  ['a changed view', [2, 0], [1, 9], 'itself', 'difference 9-9 at 2.0', 'has not seen it, and is ahead'],
  ['a changed view', [2, 5], [1, 7], 'itself', 'newest 0-10 at 3.0', 'was set back to before it'],
  ['a changed view', [2, 5], [1, 2], 'itself', 'newest 0-10 at 3.0', 'was set back into the fill'],
  ['a changed view', [2, 0], [2, 0], 'itself', 'newest 0-10 at 3.0', 'lost everything before it began'],
  ['a changed view', [2, 9], [2, 0], 'itself', 'newest 0-10 at 3.0', 'lost its position'],
  ['a view that was changed twice', [3, 0], [1, 9], 'itself', 'newest 0-10 at 4.0', 'has not seen the first one'],
  ['what differs now', [2, 8], [1, 8], 'itself', 'difference 8-9 at 2.8', 'has not seen it'],
  ['what differs now', [2, 8], [1, 10], 'itself', 'difference 10-10 at 2.10', 'has not seen it, and is ahead'],
  ['a fill', [1, 0], [6, 8], 'another sink', 'changes 8-0 at 6.8', 'was fed by another sink'],
  ['the place of another sink', [7, 8], [7, 8], 'another sink', 'changes 8-0 at 7.8', 'has got nothing since'],
  ['a fill', [1, 0], [6, 8], 'another sink with a view', 'newest 0-10 at 7.0', 'was fed by a sink with a view'],
  ['a fill with a view', [1, 0], [6, 8], 'another sink', 'newest 0-10 at 7.0', 'was fed by a sink without a view'],
  ['a fill of a store with something unknown', [9, 0], [1, 8], 'another sink', 'newest 0-8 at 9.0', 'is to be filled'],
  ['a replay of everything', [2, 0], [6, 8], 'another sink', 'replacement 0-10 at 7.0', 'is to be replaced'],
  ['a replay of everything', [2, 0], [6, 8], 'another mirror', 'replacement 0-8 at 7.0', 'is to be taken over'],
];

describe('the position of a sink on', () => {
  it.each(ROWS)(
    '%s, believed at %j, follows a store at %j, fed by %s: %s (it %s)',
    (on, believed, place, from, then) => {
      const sink = sinkOn(LEGS[on], believed);
      const mark = place && markOf(sink, place, from);
      sink.write((writer) => resume(writer, sink.sink(), mark, 0));
      expect(sink.shown()).toBe(then);
      // Opened once more before anything is delivered, it stays there.
      const again = sink.sink();
      sink.write((writer) => resume(writer, again, mark, 0));
      expect(sink.shown()).toBe(then);
      expect(sink.sink().legs.length).toBeLessThanOrEqual(3);
    },
  );

  it('a leg whose store was emptied is followed by a first fill', () => {
    const sink = sinkOn(LEGS['a changed view'], [2, 9]);
    const mark = { ...markOf(sink, [2, 0], 'itself'), refill: 'it is empty' };
    sink.write((writer) => resume(writer, sink.sink(), mark, 0));
    expect([sink.shown(), sink.sink().fillEnd]).toEqual(['first 0-10 at 3.0', null]);
  });

  it.each<[string, Place, From]>([
    ['another mirror', [1, 5], 'another mirror'],
    ['a future that was lost', [1, LAST + 1], 'itself'],
  ])('a fill stops at a store that was fed by %s, unless it was ordered', (_what, place, from) => {
    const sink = sinkOn(LEGS['a fill'], [1, 5]);
    const open = (): void => sink.write((writer) => resume(writer, sink.sink(), markOf(sink, place, from), 0));
    expect(open).toThrow(/was fed by /);
    sink.replay(0, true);
    open();
    expect(sink.shown()).toBe('replacement 0-10 at 2.0');
    // Once something of it was confirmed, the store is the sink's own.
    execute(sink.store.path, 'UPDATE sinks SET cursor = 3');
    expect(open).toThrow(/was fed by /);
  });
});

describe('a changed view', () => {
  it.each<[string, readonly SinkLeg[], Place, string]>([
    ['starts a difference from a finished fill', LEGS['a fill'], [1, 9], 'difference 9-9 at 2.0'],
    ['starts a difference from a finished difference', LEGS['a changed view'], [2, 9], 'difference 9-9 at 3.0'],
    ['starts a difference from a replay', LEGS['a replay from a change'], [2, 9], 'difference 9-9 at 3.0'],
    ['fills a store whose fill is under way', LEGS['a fill'], [1, 4], 'newest 0-10 at 2.0'],
    ['fills a store whose difference is under way', LEGS['a changed view'], [2, 4], 'newest 0-10 at 3.0'],
    ['keeps a replay that was ordered', LEGS['a replay of everything'], [2, 0], 'replacement 0-10 at 3.0'],
    ['begins the first leg of a new sink', LEGS['a fill'], [0, 0], 'first 0-5 at 1.0'],
  ])('a position: %s', (_what, legs, place, then) => {
    const sink = sinkOn(legs, place);
    sink.write(({ sinks }) => sinks.changeView(sink.sink(), { where: 'other', fields: null }));
    expect(sink.shown()).toBe(then);
    expect(legOf(sink.sink())).toMatchObject({
      where: 'other',
      tag: expect.stringMatching(/^[0-9a-f]{12}$/) as string,
    });
  });

  it('fills a store that lacks an event', () => {
    const sink = sinkOn(LEGS['a fill'], [1, 9]);
    sink.refuse(6);
    sink.skip(6);
    sink.write(({ sinks }) => sinks.changeView(sink.sink(), { where: 'other', fields: null }));
    expect([sink.shown(), sink.parked()]).toEqual(['newest 0-10 at 3.0', []]);
  });
});
