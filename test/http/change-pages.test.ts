import { expect, it } from 'vitest';
import { serveHarness } from './place.ts';
import { openReader } from './reader.ts';

const book = (n: number, title = `Book ${n}`) => ({ vbid: `P${n}`, body: JSON.stringify({ vbid: `P${n}`, title, n }) });

const seqsOf = (html: string): number[] => [...html.matchAll(/<tr id="change-(\d+)"/g)].map(([, seq]) => Number(seq));

it('the page of changes has the whole log, newest first, without a gap or a duplicate', async () => {
  const { change, page } = await serveHarness();
  expect((await page('/changes')).text).toContain('Nothing has changed yet.');
  change(Array.from({ length: 120 }, (_, n) => book(n)));
  const seen: number[] = [];
  for (let path: string | undefined = '/changes'; path !== undefined; ) {
    const { text } = await page(path);
    seen.push(...seqsOf(text));
    path = /href="(\/changes\?before=\d+)"/.exec(text)?.[1];
  }
  expect(seen).toEqual(Array.from({ length: 120 }, (_, n) => 120 - n));
  expect((await page('/changes?before=1')).text).toContain('The log has no such change.');
  expect((await page('/changes?before=x')).status).toBe(400);
  expect((await page('/changes')).text).toContain('120 changes in the last minute');
});

it('the page of changes names the fields that changed, and links each change to that version', async () => {
  const { change, page } = await serveHarness();
  change([book(1)]);
  change([book(1, 'Renamed')]);
  change([{ vbid: 'P1', body: null }]);
  const large = { ...JSON.parse(book(2).body), long: 'x'.repeat(60_000) } as Record<string, unknown>;
  change([{ vbid: 'P2', body: JSON.stringify(large) }, book(2)]);
  const { text } = await page('/changes');
  const rows = text.split('<tr id="change-').slice(1);
  expect(rows[4]).toMatch(/^1".*created.*href="\/products\/P1\?at=1".*the whole product/s);
  expect(rows[3]).toMatch(/^2".*updated.*href="\/products\/P1\?at=2"><bdi>Renamed.*<td[^>]*><bdi>title<\/bdi><\/td>/s);
  expect(rows[2]).toMatch(/^3".*removed.*the whole product.*href="\/runs\/1"/s);
  // The former value is too long to be read every second.
  expect(rows[0]).toMatch(/^5".*updated.*many or long ones/s);
});

it('the page of changes shows new ones at the top of an open page', async () => {
  const { change, web } = await serveHarness();
  change([book(1)]);
  const reader = await openReader(`${web.url}/live/changes`);
  const next = async () => {
    const { data = '' } = await reader.until(({ event }) => event === 'section');
    return JSON.parse(data) as { id: string; html: string };
  };
  const first = await next();
  expect({ id: first.id, seqs: seqsOf(first.html) }).toEqual({ id: 'changes', seqs: [1] });
  change([book(2), book(1, '<b>New</b>')]);
  const second = await next();
  expect(seqsOf(second.html)).toEqual([3, 2, 1]);
  expect(second.html).toContain('&lt;b>New');
});

it('the page of changes filters them, searches 5,000 at once, and lists the oldest first', async () => {
  const { change, page, html } = await serveHarness();
  change(Array.from({ length: 5_200 }, (_, n) => book(n)));
  change([book(1, 'Renamed'), { vbid: 'P2', body: null }]);
  expect(seqsOf(await html('/changes?op=removed&field='))).toEqual([5_202]);
  expect(seqsOf(await html('/changes?op=&field=title'))).toEqual([5_201]);
  const oldest = await html('/changes?after=0');
  expect(seqsOf(oldest)).toEqual(Array.from({ length: 50 }, (_, n) => n + 1));
  expect(oldest).toContain('href="/changes?after=50"');
  expect(seqsOf(await html('/changes?after=5200'))).toEqual([5_201, 5_202]);

  const nothing = await html('/changes?field=publisher');
  expect(nothing).toContain('None among the 5,000 that were searched.');
  const [, rest = ''] = /href="(\/changes\?field=publisher&amp;before=\d+)"/.exec(nothing) ?? [];
  expect(await html(rest.replaceAll('&amp;', '&'))).toContain('The log has no such change.');
  const later = await html('/changes?field=title&after=0');
  const [, end = ''] = /href="(\/changes\?field=title&amp;after=[1-9]\d*)"/.exec(later) ?? [];
  expect(seqsOf(await html(end.replaceAll('&amp;', '&')))).toEqual([5_201]);
  expect((await page('/changes?op=odd')).status).toBe(400);
});
