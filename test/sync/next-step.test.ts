import { expect, it } from 'vitest';
import type { Pass } from '../../src/store/rows/runs.ts';
import { nextStep, ownFrom, type StepSettings } from '../../src/sync/next-step.ts';
import { DELTA, ids, MINUTE, type PassSketch, type RunSketch, START, sketchRun } from './run-sketch.ts';

const OVERLAP = 5 * MINUTE;
const SETTINGS: StepSettings = {
  overlapMs: OVERLAP,
  maxPasses: 2,
  lookups: false,
  withdrawnAs: 'updated',
  untoldFields: [],
};

function twoWindows(first: readonly number[], second: readonly number[], total = 14): PassSketch {
  return {
    windows: [
      { ids: first, total },
      { page: 2, perPage: 8, ids: second, total },
    ],
  };
}

/** 14 products in two windows that share two of them, too few to show that the list stood still. */
const LIST = twoWindows(ids(1, 10), ids(9, 14));
const TORN = twoWindows(ids(1, 10), ids(11, 14));
const UNORDERED = twoWindows(ids(1, 10), [10, 9, ...ids(11, 14)]);
const STILL: PassSketch = {
  perPage: 20,
  windows: [
    { ids: ids(1, 20), total: 25 },
    { page: 2, perPage: 15, ids: ids(16, 25), total: 25 },
  ],
};
const LARGE: PassSketch = {
  perPage: 100,
  windows: [
    { ids: ids(1, 100), total: 200 },
    { page: 2, ids: ids(101, 200), total: 200 },
  ],
};
/** A delta of two pages that did not stand still: of products of the first window of `LIST`. */
const MOVING: PassSketch = {
  kind: 'delta',
  windows: [
    { perPage: 3, ids: ids(1, 3), total: 5 },
    { page: 2, perPage: 3, ids: [4, 5], total: 5 },
  ],
};
const EARLIER: PassSketch = { ...MOVING, from: START - 65 * MINUTE };
const REPAIR: PassSketch = { kind: 'repair', root: 0, from: null, windows: [{ page: 3, perPage: 5, ids: [11, 12] }] };
const LOOKUP: PassSketch = { kind: 'lookup', from: null, windows: [{ page: 1, perPage: 1, ids: [1] }] };
const SETTLE: PassSketch = { ...DELTA, kind: 'settle' };
const SETTLED: PassSketch = { ...SETTLE, at: 8 * MINUTE };
const REPAIRED = [REPAIR, DELTA, SETTLED];
/** The source's clock was two hours ahead while it was read. */
const AHEAD: PassSketch = { ...SETTLED, behind: -120 * MINUTE };
const REPAIR_LATER = [
  { ...REPAIR, at: 9 * MINUTE },
  { ...DELTA, at: 10 * MINUTE },
];

function times(count: number, ...passes: PassSketch[]): PassSketch[] {
  return Array.from({ length: count }, () => passes).flat();
}

/** What the run does next: the kind of step, and the pass that it reads. */
function stepAfter(
  passes: readonly PassSketch[],
  sketch: Partial<RunSketch> = {},
  settings: Partial<StepSettings> = {},
) {
  const { store, run } = sketchRun({ products: 14, passes, ...sketch });
  const step = nextStep(store, run, { ...SETTINGS, ...settings });
  if (step.kind === 'finish') return 'finish';
  const { kind, from, root, reversed } = step.pass;
  // Rounded up: each pass starts some milliseconds earlier, so that its address is its own.
  const since = from === null ? '' : ` since ${Math.ceil((from - START) / 1_000) / 60} min`;
  const notes = [
    ...(root === step.pass.pass ? [] : [`of pass ${root}`]),
    ...(reversed ? ['reversed'] : []),
    ...(step.kind === 'settle' ? [`missing ${step.missing}`] : []),
  ];
  return [`${kind}${since}`, ...notes].join(', ');
}

it('a run reads no two deltas from the same time, in one run or in several that start alike', () => {
  const { store, run } = sketchRun({ products: 14, passes: [LIST] });
  const starts = [0, 1, 2].flatMap((later) => {
    const { pass } = nextStep(store, run, SETTINGS) as { pass: Pass };
    return [0, 1, 2].map((more) => ownFrom(pass, run.id + later, pass.pass + more));
  });
  expect(new Set(starts).size).toBe(9);
  expect(Math.min(...starts.map(Number))).toBeGreaterThan(START - OVERLAP - 1_000);
});

it.each<[string, readonly PassSketch[], string]>([
  ['a list in one response', [{ perPage: 20, windows: [{ ids: ids(1, 14) }] }], 'finish'],
  ['a list in several windows', [LIST], 'delta since -5 min'],
  ['a delta that moved', [LIST, MOVING], 'settle since -5 min, missing 0'],
  ['a delta that moved, and shows a gap', [LIST, { ...TORN, kind: 'delta' }], 'repair, of pass 0'],
  ['a delta that moved, after a repair', [TORN, DELTA, REPAIR, MOVING], 'settle since -5 min, missing 0'],
  ['a joined list', [LIST, DELTA], 'settle since -5 min, missing 0'],
  ['a list with a gap', [TORN, DELTA], 'repair, of pass 0'],
  ['a repair', [TORN, DELTA, REPAIR], 'delta since -4 min'],
  ['a repair that did not help', [TORN, DELTA, REPAIR, DELTA], 'settle since -5 min, missing 0'],
  ['a repair that did not help, and a settling delta', [TORN, DELTA, REPAIR, DELTA, SETTLED], 'repair, of pass 0'],
  ['a repair after a settling delta', [TORN, DELTA, SETTLED, { ...REPAIR, at: 9 * MINUTE }], 'delta since 3 min'],
  [
    'a repair after a settling delta that was ahead',
    [TORN, DELTA, AHEAD, { ...REPAIR, at: 9 * MINUTE }],
    'delta since -4 min',
  ],
  [
    'a settling delta that was ahead, and a repair',
    [TORN, DELTA, AHEAD, ...REPAIR_LATER],
    'settle since -5 min, missing 0',
  ],
  ['two repairs that did not help', [TORN, DELTA, ...REPAIRED, ...REPAIR_LATER], 'finish'],
  ['an unordered list of every product', [UNORDERED, DELTA], 'finish'],
])('the next step of a full run after %s', (_what, passes, step) => {
  expect(stepAfter(passes)).toBe(step);
});

it('the next step of a full run reads a delta after each repair of a list that has nearly every product', () => {
  const repair: PassSketch = { ...REPAIR, windows: [{ page: 21, perPage: 5, ids: ids(101, 105), total: 200 }] };
  for (const rounds of [1, 3, 4]) {
    const passes = [LARGE, DELTA, ...times(rounds, repair, DELTA), repair];
    expect(stepAfter(passes, { products: 200 })).toMatch(/^delta since/);
  }
});

it('the next step of a full run finishes without settling if the list stood still and every product was seen', () => {
  expect(stepAfter([STILL, DELTA], { products: 25 })).toBe('finish');
  expect(stepAfter([STILL, DELTA], { products: 26 })).toMatch(/^settle .* missing 1$/);
});

it('the next step of a full run reads plain pages with a delta that reaches back to the watermark', () => {
  expect(stepAfter([{ ...LIST, seam: 0 }], { watermarkAgo: 60 * MINUTE })).toBe('delta since -65 min');
});

it('the next step of a full run that has not seen all settles, reads the list again in reverse, then looks products up', () => {
  const first = [UNORDERED, DELTA, SETTLED];
  const later = { ...DELTA, at: 10 * MINUTE };
  const again = [...first, { ...UNORDERED, reversed: true, at: 9 * MINUTE }, later];
  const more = { products: 20 };
  expect(stepAfter([UNORDERED, DELTA], more)).toMatch(/^settle .* missing 6$/);
  expect(stepAfter([UNORDERED, DELTA, MOVING], more)).toMatch(/^settle .* missing 6$/);
  expect(stepAfter(first, more)).toBe('list, reversed');
  expect(stepAfter(first, more, { maxPasses: 1 })).toBe('finish');
  expect(stepAfter(again, more)).toMatch(/^settle .* missing 6$/);
  expect(stepAfter(again, more, { maxPasses: 3 })).toBe('list');
  expect(stepAfter(again, more, { lookups: true })).toBe('lookup');
  const lookedUp = [...again, { ...LOOKUP, at: 11 * MINUTE }];
  expect(stepAfter(lookedUp, more, { lookups: true })).toMatch(/^delta since/);
  expect(stepAfter([...lookedUp, { ...DELTA, at: 12 * MINUTE }], more, { lookups: true })).toMatch(
    /^settle .* missing 6$/,
  );
});

it('the next step of a delta run whose delta is torn does not wait for what concludes nothing', () => {
  const torn: PassSketch = { ...TORN, kind: 'delta', from: START - 65 * MINUTE };
  const repair: PassSketch = { ...REPAIR, from: torn.from ?? 0 };
  const passes = [torn, DELTA, ...times(5, repair, DELTA), MOVING];
  expect(stepAfter(passes, { kind: 'delta', watermarkAgo: 60 * MINUTE })).toBe('finish');
});

it('the next step of a full run reads a delta from an earlier time if the source put its clock back', () => {
  expect(stepAfter([LIST, { ...DELTA, behind: 10 * MINUTE }])).toBe('delta since -15 min');
  const asked = { ...DELTA, from: START - 15 * MINUTE, behind: 10 * MINUTE };
  expect(stepAfter([LIST, asked])).toMatch(/^settle/);
});

it('the next step of a full run reads the earlier delta although deltas stay long', () => {
  const behind = { ...MOVING, behind: 60 * MINUTE };
  expect(stepAfter([LIST, behind])).toBe('delta since -65 min');
  expect(stepAfter([LIST, behind, { ...behind, from: EARLIER.from ?? 0 }])).toMatch(/^settle since -65/);
  // Also if each is the whole list, so that no settling delta tells it again.
  const told = { ...LARGE, kind: 'delta' as const, from: START - 5 * MINUTE, behind: 60 * MINUTE };
  expect(stepAfter([LARGE, told, told], { products: 200 })).toBe('delta since -65 min');
});

const early = { ...SETTLE, at: 2 * MINUTE };

it('a run that settles finishes after a delta that was read late enough', () => {
  expect(stepAfter([LIST, DELTA, SETTLED])).toBe('finish');
});

it.each<[string, PassSketch]>([
  ['was read too early', early],
  ['moved while it was read', { ...MOVING, kind: 'settle', at: 8 * MINUTE }],
  ['had two pages that seemed to stand still', { ...STILL, kind: 'settle', at: 8 * MINUTE }],
  ['has an early time by the source', { ...SETTLED, behind: 5 * MINUTE }],
])('a run that settles settles again after a delta that %s', (_what, settle) => {
  expect(stepAfter([LIST, DELTA, settle])).toMatch(/^settle since .* missing 0$/);
});

it('a run that settles starts the next delta from the last one that was late enough', () => {
  const moved = { ...MOVING, kind: 'settle' as const, at: 8 * MINUTE };
  expect(stepAfter([LIST, DELTA, moved])).toBe('settle since 3 min, missing 0');
});

it('a run that settles starts the delta before the clock of the source was put forward, although that was before the run', () => {
  const ahead = { behind: -120 * MINUTE };
  const passes = [
    { ...LIST, ...ahead },
    { ...DELTA, ...ahead },
  ];
  expect(stepAfter(passes)).toBe('settle since 115 min, missing 0');
  expect(stepAfter(passes, { watermarkAgo: 60 * MINUTE })).toBe('settle since -5 min, missing 0');
});

it('a run that settles gives up after four deltas', () => {
  expect(stepAfter([LIST, DELTA, ...times(3, early)])).toMatch(/^settle/);
  expect(stepAfter([LIST, DELTA, ...times(4, early)])).toBe('finish');
});

it('a run that settles repairs a gap that the settling delta shows', () => {
  const modified = { ...SETTLE, at: 8 * MINUTE, windows: [{ ids: [9, 10] }] };
  expect(stepAfter([LIST, DELTA, modified])).toBe('repair, of pass 0');
});

it('a step tells the seams that it had to judge', () => {
  function seamsAfter(...passes: PassSketch[]) {
    const { store, run } = sketchRun({ products: 14, passes });
    const step = nextStep(store, run, SETTINGS);
    return step.kind === 'finish' ? expect.fail() : step.seams;
  }
  expect(seamsAfter(LIST)).toBeNull();
  expect(seamsAfter(LIST, DELTA)).toMatchObject([{ pass: 0, kind: 'list', seams: 'j' }]);
  expect(seamsAfter(TORN, DELTA)).toMatchObject([{ pass: 0, seams: 'o' }]);
  expect(seamsAfter(TORN, DELTA, REPAIR)).toBeNull();
});

const run = { kind: 'delta' as const, watermarkAgo: 60 * MINUTE };

it.each<[string, readonly PassSketch[], string]>([
  ['one response', [DELTA], 'finish'],
  ['a delta that moved', [EARLIER], 'delta since -5 min'],
  ['a delta of a delta that moved', [EARLIER, MOVING], 'repair since -65 min, of pass 0'],
  ['two deltas that moved', times(2, EARLIER), 'finish'],
  ['a clock that was put back since the watermark', [{ ...DELTA, behind: 10 * MINUTE }], 'catchup since -75 min'],
  [
    'the delta that this needs',
    [
      { ...DELTA, behind: 10 * MINUTE },
      { ...DELTA, kind: 'catchup', from: START - 75 * MINUTE, behind: 10 * MINUTE },
    ],
    'finish',
  ],
])('the next step of a delta run after %s', (_what, passes, step) => {
  expect(stepAfter(passes, run)).toBe(step);
});
