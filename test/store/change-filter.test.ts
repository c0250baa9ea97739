import { expect, it, onTestFinished } from 'vitest';
import { openHarness } from '../../src/contract/harness.ts';

it('a filter by members leaves out updates of other members, and nothing else', () => {
  const mirror = openHarness();
  onTestFinished(() => mirror.close());
  const change = (...members: readonly string[]): void =>
    mirror.change([{ vbid: 'A', body: `{${['"vbid":"A"', ...members].join(',')}}` }]);
  change('"title":"x"');
  change('"title":"x"', '"price":1');
  change('"title":"y"', '"price":1');
  change('"title":"y"');
  mirror.change([{ vbid: 'A', body: null }]);
  change('"title":"y"');
  const opsOf = (keys: ReadonlySet<string> | null): string[] =>
    mirror.store.changes.matching(0, 10, { keys }).changes.map(({ seq, op }) => `${seq} ${op}`);
  expect(opsOf(null)).toHaveLength(6);
  expect(opsOf(new Set(['price', 'none']))).toEqual(['1 created', '2 updated', '4 updated', '5 removed', '6 restored']);
  expect(opsOf(new Set(['title']))).toEqual(['1 created', '3 updated', '5 removed', '6 restored']);
  expect(opsOf(new Set())).toEqual(['1 created', '5 removed', '6 restored']);
});

it('a filter by thousands of members takes as long as one by few', { tags: ['slow'], timeout: 60_000 }, () => {
  const mirror = openHarness();
  onTestFinished(() => mirror.close());
  for (const title of ['x', 'y', 'z']) {
    mirror.change(Array.from({ length: 500 }, (_, nth) => ({ vbid: `P${nth}`, body: JSON.stringify({ title }) })));
  }
  // If each change were compared with each member, this would take minutes.
  const names = Array.from({ length: 300_000 }, (_, nth) => `member${nth}`);
  for (const filter of [{ field: names }, { keys: new Set(names) }]) {
    expect(mirror.store.changes.matching(500, 10, filter)).toEqual({ changes: [], to: 1_500 });
  }
});
