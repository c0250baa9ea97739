import pc from 'picocolors';
import { expect, it } from 'vitest';
import { seamPicture } from '../../src/report/seam-picture.ts';

const colours = pc.createColors(false);

const FIGURES = { requests: 6, deltas: 1, lookups: 2, seen: 3_000, numItems: 3_000, updatedShare: 0 };

it('the picture has one cell per seam, or shows the worst of several', () => {
  const list = { pass: 0, kind: 'list', windows: 4, repairs: 1, overlap: 12, overlapLeast: 10 } as const;
  const cellsOf = (seams: string) =>
    /▕(.*)▏/.exec(seamPicture(colours, { ...FIGURES, lists: [{ ...list, seams }] }))?.[1] ?? '';
  expect(cellsOf('jro')).toBe('━╋┄');
  const cells = cellsOf(`${'j'.repeat(599)}o${'j'.repeat(599)}r`);
  expect(cells).toHaveLength(60);
  expect(cells.match(/┄/g)).toHaveLength(1);
  expect(cells.at(-1)).toBe('╋');
});

it('the picture describes each list that was read', () => {
  const list = {
    pass: 0,
    kind: 'list',
    windows: 4,
    repairs: 1,
    overlap: 12,
    overlapLeast: 10,
    seams: 'jro',
  } as const;
  const exact = { pass: 1, kind: 'delta', windows: 1, repairs: 0, overlap: 0, overlapLeast: 0, seams: '' } as const;
  expect(seamPicture(colours, { ...FIGURES, lists: [list, exact] }).split('\n')).toEqual([
    '  evidence 6 requests, 1 delta, 2 lookups',
    '  catalog  ▕━╋┄▏',
    '           3 seams: 1 joined, 1 repaired, 1 open',
    '           4 windows and 1 repair, neighbours share 12 products (at least 10)',
    '  delta    one response, exact',
  ]);
});
