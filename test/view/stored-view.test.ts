import { execute, query } from '@catchword/testing/sqlite';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/contract/harness.ts';
import { compileView, viewText } from '../../src/view/view.ts';
import { temporaryMirror } from '../relay/feeding.ts';
import { memory } from '../relay/memory.ts';

const NAMES = { where: 'WHERE', fields: 'FIELDS' };
const VIEWS: readonly (readonly [what: string, stored: string])[] = [
  ['reads and makes too much', `json_object('t', json_array(${Array(90).fill('title').join(', ')}))`],
  ['has too many instructions', `json_object('t', title IN (${Array(1_600).fill(7).join()}))`],
  ['has a query in FROM', "json_object('t', (SELECT a FROM (SELECT title AS a)))"],
];

it.each(VIEWS)(
  'a store gets a new view when its stored one, which is not permitted any more, %s',
  async (_what, stored) => {
    expect(() => compileView(viewText(undefined, stored), NAMES)).toThrow(/^FIELDS: /);
    const mirror = temporaryMirror();
    const store = memory();
    onTestFinished(() => mirror.stop());
    mirror.change([{ vbid: 'A', body: '{"vbid":"A","title":"t","format":"f"}' }]);
    const start = (fields: string) =>
      mirror.start(store.config({ view: compileView(viewText(undefined, fields), NAMES) }));
    start("json_object('t', title)");
    await mirror.caughtUp();
    await mirror.stop();
    execute(
      mirror.store.path,
      `UPDATE sinks SET legs = json_set(legs, '$[#-1].fields', '${stored.replaceAll("'", "''")}')`,
    );
    expect(query(mirror.store.path, "SELECT legs ->> '$[#-1].fields' AS fields FROM sinks")).toEqual([
      { fields: stored },
    ]);
    start("json_object('f', format)");
    const newest = () => store.rows.at(-1)?.body;
    const said = () => mirror.sink().error;
    await until('the store has the new view, or an error', () => newest()?.includes('"f"') === true || said() !== null);
    expect([newest(), said()]).toEqual(['{"vbid":"A","f":"f"}', null]);
    expect(mirror.sink()).toMatchObject({ state: 'running', error: null });
  },
);
