import { difference } from '@catchword/catalog/content';
import { eventId, eventText, type RecordedChange } from '@catchword/catalog/event';
import type { ChangeOp } from '@catchword/catalog/run-types';
import { describe, expect, it } from 'vitest';
import { parseEvent } from '../../src/events/events.ts';
import { compileView } from '../../src/view/view.ts';
import { viewedChange } from '../../src/view/viewed-change.ts';

const NAMES = { where: 'WHERE', fields: 'FIELDS' };
const VIEW = compileView({ where: "body->>'shop' = 1", fields: 'title' }, NAMES);

function change(op: ChangeOp, before: string | null, after: string | null): RecordedChange {
  const base = { seq: 7, era: 'e', at: 0, op, vbid: 'A', runId: 1, cause: 'delta' as const, body: after };
  if (op === 'updated') return { ...base, ...difference(before ?? '', after ?? '') };
  return { ...base, before, added: [] };
}

const IN = '{"vbid":"A","shop":1,"title":"x"}';
const IN_Y = '{"vbid":"A","shop":1,"title":"y"}';
const IN_PRICED = '{"vbid":"A","shop":1,"title":"x","price":2}';
const OUT = '{"vbid":"A","shop":0,"title":"x"}';
const OUT_Y = '{"vbid":"A","shop":0,"title":"y"}';
const V = '{"vbid":"A","title":"x"}';

describe('a change, for a reader with a view,', () => {
  it.each<[what: string, change: RecordedChange, event: unknown, always: unknown]>([
    [
      'creates a product that matches',
      change('created', null, IN),
      { op: 'created', product: V, before: null, view: 'entered' },
      'same',
    ],
    [
      'restores one',
      change('restored', null, IN),
      { op: 'restored', product: V, before: null, view: 'entered' },
      'same',
    ],
    [
      'lets one enter',
      change('updated', OUT, IN),
      { op: 'created', product: V, before: null, view: 'entered' },
      'same',
    ],
    ['lets one leave', change('updated', IN, OUT), { op: 'removed', product: null, before: V, view: 'left' }, 'same'],
    ['removes one', change('removed', IN, null), { op: 'removed', product: null, before: V, view: undefined }, 'same'],
    [
      'updates one',
      change('updated', IN, IN_Y),
      { op: 'updated', product: '{"vbid":"A","title":"y"}', before: '{"title":"x"}', view: undefined },
      'same',
    ],
    [
      'updates what it does not see',
      change('updated', IN, IN_PRICED),
      null,
      { op: 'updated', product: V, before: '{}', view: undefined },
    ],
    [
      'concerns none that matches',
      change('updated', OUT, OUT_Y),
      null,
      { op: 'removed', product: null, before: null, view: 'left' },
    ],
    [
      'creates none that matches',
      change('created', null, OUT),
      null,
      { op: 'removed', product: null, before: null, view: 'left' },
    ],
    [
      'removes none that matches',
      change('removed', OUT, null),
      null,
      { op: 'removed', product: null, before: null, view: undefined },
    ],
  ])('it %s', (_what, recorded, event, always) => {
    const partsOf = (found: RecordedChange | null): unknown => {
      if (found === null) return null;
      const { op, body: product, before, view } = found;
      const text = eventText(found, 'i', 's');
      const { data, id } = parseEvent(text);
      expect([data.op, data.view, id]).toEqual([op, view, 'i_e.tag:7']);
      return { op, product, before, view };
    };
    expect(partsOf(viewedChange(VIEW, recorded, 'tag'))).toEqual(event);
    expect(partsOf(viewedChange(VIEW, recorded, 'tag', true))).toEqual(always === 'same' ? event : always);
  });

  it('that changes no member which the view reads is skipped without being judged', () => {
    const of = (): never => {
      throw new Error('it was judged');
    };
    expect(viewedChange({ of, keys: VIEW.keys }, change('updated', IN, IN_PRICED), 'tag')).toBeNull();
    expect(() => viewedChange({ of, keys: VIEW.keys }, change('updated', IN, IN_Y), 'tag')).toThrow('it was judged');
    const slash = change('updated', '{"a/b":1}', '{"a/b":2}');
    expect(() => viewedChange({ of, keys: new Set(['a/b']) }, slash, 'tag')).toThrow('it was judged');
  });

  it('has an id of its own', () => {
    expect(eventId('i', { era: 'e', seq: 7 })).toBe('i_e:7');
    expect(VIEW.digest).not.toBe(compileView({ where: "body->>'shop' = 1", fields: null }, NAMES).digest);
  });
});
