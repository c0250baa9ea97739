import { expect, it } from 'vitest';
import { readerView } from '../../src/view/view.ts';

/** More than are kept, three statements each. */
const VIEWS = 1_500;

it('a process that compiles more different views than it keeps goes on, and the newest ones work', () => {
  const views = Array.from({ length: VIEWS }, (_, index) => readerView({ where: `title = 'T${index}'` }));
  const body = JSON.stringify({ vbid: 'A', title: `T${VIEWS - 1}` });
  expect(views.flatMap((view) => view?.of('A', body) ?? [])).toEqual([body]);
  expect(views.map((view) => view?.failures().count)).toEqual(views.map(() => 0));
});
