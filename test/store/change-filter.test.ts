import { expect, it, onTestFinished } from 'vitest';
import { openHarness } from '../../src/relay/contract/harness.ts';

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
