import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/contract/harness.ts';
import { createAbsence } from '../../src/view/absent-members.ts';
import { compileView, viewText } from '../../src/view/view.ts';
import { temporaryMirror } from '../relay/feeding.ts';
import { memory } from '../relay/memory.ts';

const view = (where: string | undefined, fields: string | undefined) =>
  compileView(viewText(where, fields), { where: 'WHERE', fields: 'FIELDS' });

it('a member is absent if no product has its path, also inside of another member, a text or a list', () => {
  const paths = ['vbid', 'a', 'a.b', 'a.b.c', 'a.x', 'b.c', 'list.a', 'text.a', 'none', 'titel', 'null'];
  const absence = createAbsence(paths);
  expect(absence.paths()).toEqual([]);
  absence.see('{"a":{"b":{"c":1}},"b":{"c":null},"list":[{"a":1}],"text":"{\\"a\\":1}","title":"t","null":null}');
  expect(absence.paths()).toEqual(['a.x', 'list.a', 'text.a', 'none', 'titel']);
  expect(absence.found().at(-1)).toEqual({ path: 'titel', near: 'title', isKnown: false });
  const similar = createAbsence(['meta.descripton', 'meta.other', 'list.a', 'none.a']);
  similar.see('{"meta":{"description":"d","n":1},"list":[]}');
  expect(similar.found().map(({ path, near }) => [path, near])).toEqual([
    ['meta.descripton', 'meta.description'],
    ['meta.other', undefined],
    ['list.a', 'list'],
    ['none.a', undefined],
  ]);
  absence.see('{"a":{"x":[]},"text":{"a":1}}');
  expect(absence.paths()).toEqual(['list.a', 'none', 'titel']);
});

it('a member is not absent because its name has a dot or a hyphen', () => {
  const absence = createAbsence(
    view("body->>'a.b' = 1 OR body->>'$.\"c.d\"' = 1 OR body->>'$.e-f' = 1", undefined).paths,
  );
  absence.see('{"a.b":1,"c.d":1,"e-f":1}');
  expect(absence.found()).toEqual([]);
});

it('a member is not absent if its absence says something: without distributable, a product is not withdrawn', () => {
  const absence = createAbsence(view('distributable AND language IS NOT NULL', undefined).paths);
  absence.see('{"title":"t"}');
  expect(absence.paths()).toEqual(['language']);
});

it.each([
  ['a list', undefined, 'vbid, titel', 'no product has titel: did you mean title?'],
  ['a path of a list', undefined, 'vbid, metadata.pages', 'no product has metadata.pages'],
  ['an expression', undefined, "json_object('t', body->>'titel')", 'no product has titel: did you mean title?'],
  ['a filter', "body->>'prise' IS NULL", undefined, 'no product has prise: did you mean price?'],
])('a sink is held when %s of its changed view names what no product has', async (_, where, fields, said) => {
  const mirror = temporaryMirror();
  const store = memory();
  onTestFinished(() => mirror.stop());
  mirror.change(
    Array.from({ length: 10 }, (_one, n) => ({ vbid: `P${n}`, body: `{"vbid":"P${n}","title":"t","price":1}` })),
  );
  mirror.start(store.config());
  await mirror.caughtUp();
  await mirror.stop();
  const rows = store.rows.length;
  mirror.start(store.config({ view: view(where, fields) }));
  await until('the sink is held', () => mirror.sink().state === 'held');
  expect(mirror.sink().held).toMatchObject({ forecast: { absent: [said] } });
  expect(store.rows.length).toBe(rows);
  await mirror.stop();
  // A member that the service describes may just be rare.
  mirror.start(store.config({ view: view(undefined, 'vbid, title, subtitle') }));
  await until('the store has it', () => store.rows.length === rows + 10);
});
