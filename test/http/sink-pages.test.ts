import { expect, it } from 'vitest';
import { changeSink } from '../../src/operate/decisions/sink-actions.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import type { RelayWriter } from '../../src/store/schema/writers.ts';
import { recordedChange } from '../support/recorded-change.ts';
import { serveHarness } from './place.ts';

const HOSTILE = '<script>alert(1)</script> \u202e';

/** A mirror with one sink that no relay feeds. */
async function scene() {
  const served = await serveHarness();
  const { store } = served;
  const relay = (work: (writer: RelayWriter, id: number) => void) =>
    writeUnder(store.relayLease, Date.now(), (writer) => work(writer, writer.sinks.get('shop')?.id ?? 0));
  return {
    ...served,
    relay,
    configure: (kind = 'redis') =>
      relay(({ sinks }) => sinks.configure({ name: 'shop', kind, address: 'https://shop.example', identity: 'i' })),
  };
}

const books = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    vbid: `P${n}`,
    body: JSON.stringify({ vbid: `P${n}`, title: `Book ${n}` }),
  }));

/** The decisions that a page offers: action and argument. */
const decisionsOf = (html: string): string[] =>
  [...html.matchAll(/name="action" value="([\w-]+)"[^>]*>(?:<[^b][^>]*>)*?(?=<button|<label)/g)].map(
    ([all, action]) => {
      const [, argument] = /name="argument" value="(\d+)"/.exec(all) ?? [];
      return argument === undefined ? String(action) : `${action} ${argument}`;
    },
  );

it('the page of sinks says how to add the first sink, and that an unknown one does not exist', async () => {
  const { page, html } = await scene();
  expect(await html('/sinks')).toContain('CATCHWORD_SINK_&lt;NAME>');
  expect(await page('/sinks/none')).toMatchObject({ status: 404, text: /no sink/ });
});

it('the page shows how far a sink is, and its last error', async () => {
  const { store, change, configure, relay, html } = await scene();
  change(books(1_234));
  configure();
  expect(await html('/sinks')).toMatch(/initial load.*1,234 changes, for/s);
  const now = Date.now();
  relay(({ sinks }, id) => {
    sinks.ack({ id, generation: 1 }, { cursor: 1_234, delivered: 1_234, rate: 99.6, at: now });
    sinks.fail(id, `cannot connect: ${HOSTILE}`, now, now + 60_000);
  });
  for (const path of ['/sinks', '/sinks/shop']) {
    const lease = store.relayLease.acquire(Date.now());
    expect(await html(path)).not.toContain('No daemon or relay is running');
    lease.release();
    const text = await html(path);
    expect(text).toContain('No daemon or relay is running');
    expect(text).toContain('up to date');
    expect(text).toMatch(/>100</);
    expect(text).toContain('>retrying</bdi></strong>');
    expect(text).toContain('cannot connect: &lt;script>alert(1)&lt;/script> \\u202e');
    expect(text).not.toContain('<script>');
  }
  expect(await html('/sinks/shop')).toMatch(/Next try<\/dt><dd><time/);
  relay(({ sinks }, id) => sinks.addGap({ id, after: 10, upTo: 20, at: now }));
  expect(await html('/sinks/shop')).toContain('superseded changes after 10 up to 20');
});

it('the page offers the decisions that the state allows', async () => {
  const { store, change, configure, relay, html } = await scene();
  change(books(3));
  configure();
  expect(decisionsOf(await html('/sinks/shop'))).toEqual(['pause', 'verify-deep', 'replay', 'replay']);
  store.request(({ sinks }) => sinks.setState(sinks.get('shop')?.id ?? 0, 'paused'));
  const paused = await html('/sinks/shop');
  expect(paused).toContain('An operator paused it.');
  expect(decisionsOf(paused)).toEqual(['resume', 'replay', 'replay']);
  expect(paused).toMatch(/<input id="from" type="number" name="argument" min="1" step="1" required/);
  relay(({ sinks }, id) => sinks.stop(id, 'rejected event 2', Date.now(), 2));
  expect(decisionsOf(await html('/sinks/shop'))).toEqual(['resume', 'retry', 'skip 2', 'skip-all', 'replay', 'replay']);
});

it('the page does not offer to compare a store that can never be compared, and says why', async () => {
  const { configure, html } = await scene();
  configure('webhook');
  const text = await html('/sinks/shop');
  expect(decisionsOf(text)).toEqual(['pause', 'replay', 'replay']);
  expect(text).toContain('cannot be compared with its source: catchword cannot read what a receiver has stored.');
});

/** Some pages full, and many. */
const PARKED = [
  { total: 1_200, tags: [] },
  { total: 10_000, tags: ['slow'] },
];

for (const { total, tags } of PARKED) {
  it(`the page of a sink has ${total} parked events, and skips only rejected ones`, { tags }, async () => {
    const { store, change, configure, relay, html } = await scene();
    change(books(total / 2));
    change(books(total / 2).map(({ vbid }) => ({ vbid, body: JSON.stringify({ vbid, title: HOSTILE }) })));
    configure();
    relay(({ sinks, changes }, id) => {
      for (const { vbid, seq, at, op, headBody } of changes.after(0, total)) {
        const event = recordedChange({ vbid, seq, at, op }, headBody);
        const refused = { seq, reason: `HTTP 422 ${HOSTILE}`, at, change: event };
        if (op === 'created') sinks.park(id, refused);
        else sinks.parkWaiting(id, [refused]);
      }
    });
    const seen: number[] = [];
    let skips = 0;
    for (let path: string | undefined = '/sinks/shop'; path !== undefined; ) {
      const text = await html(path);
      const parked = text.slice(text.indexOf('id="parked"'));
      expect(parked).not.toContain('<script>');
      seen.push(
        ...[...parked.matchAll(/<th scope="row">([\d,]+)</g)].map(([, seq = '']) => Number(seq.replace(',', ''))),
      );
      skips += decisionsOf(parked).filter((decision) => decision.startsWith('skip ')).length;
      path = /href="(\/sinks\/shop\?after=\d+)#parked"/.exec(parked)?.[1];
    }
    expect(seen).toEqual(Array.from({ length: total }, (_, n) => n + 1));
    expect(skips).toBe(total / 2);
    expect(await html('/sinks')).toContain(`href="/sinks/shop#parked">${total.toLocaleString('en-US')}</a>`);
    expect(await html('/sinks/shop')).toContain('<section id="parked" data-live="true"');
    const id = store.sinks.get('shop')?.id ?? 0;
    const [first] = store.sinks.waiting(id, 0, 1);
    expect(first).toEqual({
      seq: 1,
      vbid: 'P0',
      op: 'created',
      state: 'refused',
      freed: 0,
      reason: `HTTP 422 ${HOSTILE}`,
      at: first?.at,
      title: HOSTILE,
      body: null,
      length: expect.any(Number) as number,
    });
    // All of them at once: later events of the same products are freed.
    expect(store.request((writer) => changeSink(writer, 'skip-all', 'shop', null, Date.now()))).toMatch(
      new RegExp(`^${(total / 2).toLocaleString('en-US')} events`),
    );
    expect(store.sinks.parkedCount(id)).toBe(total / 2);
    expect(new Set(store.sinks.waiting(id, 0, total).map(({ state }) => state))).toEqual(new Set(['ready']));
  });
}

it('the page of a sink draws its last day, a bar for its fill, and the body of an event with its error', async () => {
  const { store, change, configure, relay, html } = await scene();
  change(books(4));
  configure();
  expect(await html('/sinks/shop')).toContain('Curves appear here when a daemon has run for ten minutes.');
  const now = Date.now();
  const minutesAgo = (minutes: number) => now - minutes * 60_000;
  writeUnder(store.daemonLease, now, ({ points }) => {
    const { id: sinkId = 0 } = store.sinks.get('shop') ?? {};
    points.note({ sinkId, at: minutesAgo(1_500), behind: 9_000, delivered: 0 });
    points.note({ sinkId, at: minutesAgo(720), behind: 600, delivered: 0 });
    points.note({ sinkId, at: minutesAgo(710), behind: 0, delivered: 600 });
  });
  const long = JSON.stringify({ vbid: 'P1', title: HOSTILE, more: 'x'.repeat(5_000) });
  relay(({ sinks }, id) => {
    sinks.ack({ id, generation: 1 }, { cursor: 1, delivered: 1, rate: 0, at: now });
    const refused = { ...recordedChange({ seq: 2, vbid: 'P1', at: now, op: 'updated' }), body: long };
    sinks.park(id, { seq: 2, reason: 'HTTP 422', at: now, change: refused });
  });
  const text = await html('/sinks/shop');
  expect(text).toMatch(
    /aria-label="Behind: 0 changes at [^"]*; at most 600 since [^"]*"><polyline points="144,0 146,60"/,
  );
  expect(text).toMatch(/aria-label="Events a second: 1 before [^"]*"><polyline points="146,0"/);
  expect(text).toMatch(/<progress max="1" value="0.25"/);
  expect(text).toMatch(/HTTP 422.*&lt;script>.*more of 5,0\d\d characters.*The first 4,000 of 5,0\d\d characters/s);
  expect(await html('/sinks')).toContain('<progress max="1" value="0.25"');
});
