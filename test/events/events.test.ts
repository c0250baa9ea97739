import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { CatchwordError, parseEvent, productText } from '../../src/events/events.ts';
import { createHistory } from '../../src/store/history/history.ts';
import { openStore } from '../../src/store/store.ts';
import { eventSchemaFile } from '../docs/reference.ts';
import { serve } from '../http/place.ts';
import { get } from '../http/reader.ts';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { filled } from '../support/place.ts';

const EXAMPLE = (JSON.parse(eventSchemaFile()) as { examples: [Record<string, unknown>] }).examples[0];
const text = (changed: Record<string, unknown> = {}) => JSON.stringify({ ...EXAMPLE, ...changed });

function failureOf(event: unknown): unknown {
  try {
    return parseEvent(event);
  } catch (error) {
    return error;
  }
}

describe('parseEvent', () => {
  it('returns an event with fields that it does not know', () => {
    const event = parseEvent(text({ traceparent: '00-1', data: { ...(EXAMPLE.data as object), later: [1] } }));
    expect(event).toMatchObject({ traceparent: '00-1', data: { later: [1] } });
    expect(parseEvent(event)).toBe(event);
    if (event.data.op !== 'updated') throw new Error(event.data.op);
    // Typed by the op.
    const title: string | null | undefined = event.data.product.title;
    const before: string | null | undefined = event.data.before.title;
    expect([title, before]).toEqual(['A New History of Bridges', 'A History of Bridges']);
  });

  it('keeps fields of a product as the source sent them, also of another type than usual', () => {
    const product = { vbid: 12, title: ['a', 'list'], price: 1 };
    const { data } = parseEvent(text({ data: { ...(EXAMPLE.data as object), product } }));
    expect(data.product).toEqual(product);
  });

  it('rejects what is not an event, and says where', () => {
    const wrong: [unknown, RegExp][] = [
      ['', /not JSON/],
      ['{"specversion":"1.0"', /not JSON/],
      [null, /not an event/],
      [undefined, /not an event/],
      ['[]', /not an event/],
      [{}, /specversion/],
      [Buffer.from(text()), /specversion/],
      [text({ specversion: '2.0' }), /specversion/],
      [text({ type: 'com.example.other' }), /type/],
      [text({ sequence: '12' }), /sequence/],
      [text({ data: null }), /data/],
      [text({ data: { ...(EXAMPLE.data as object), op: 'renamed' } }), /data\.op/],
      [text({ data: { ...(EXAMPLE.data as object), product: null } }), /data\.product/],
    ];
    for (const [event, message] of wrong) {
      const error = failureOf(event);
      expect(error).toBeInstanceOf(CatchwordError);
      expect(error).toMatchObject({ code: 'EVENT_INVALID', message: expect.stringMatching(message) as string });
    }
  });
});

describe('productText', () => {
  it('keeps every digit', () => {
    const body = '{"vbid":"A","x":12345678901234567890.10}';
    const given = text().replace(/"product":\{[^}]*\}/, () => `"product":${body}`);
    expect(parseEvent(given).data.product).toMatchObject({ x: 12345678901234567000 });
    expect(productText(given)).toBe(body);
    expect(productText(text({ data: { product: null } }))).toBeNull();
  });
});

describe('schemas/event.json', () => {
  it('schemas/event.json is what `npm run docs` writes, and what a server answers', async () => {
    const file = readFileSync(new URL('../../schemas/event.json', import.meta.url), 'utf8');
    expect(file).toBe(eventSchemaFile());
    const { db } = await filled({ items: 1 });
    const { web } = await serve(db);
    expect(JSON.parse((await get(`${web.url}/schemas/event.json`)).text)).toEqual(JSON.parse(file));
  });

  it('fits every event of a mirror, as parseEvent does', { tags: ['slow'] }, async () => {
    const { db, settings, sandbox, directory } = await filled({ items: 1_500, details: true, withdrawnForMs: 0 });
    sandbox.catalog.mutate({ update: 20, remove: 5, create: 3, seed: 1 });
    await load(settings, 'full');
    const undone = await runHere(['runs', 'undo', '2'], settings, directory);
    expect(undone.stderr).toBe('');
    const { stdout } = await runHere(['changes'], settings, directory);
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(
      JSON.parse(eventSchemaFile()) as object,
    );
    const ops = new Set<string>();
    for (const line of stdout.trimEnd().split('\n')) {
      const event = parseEvent(line);
      expect([validate(event), validate.errors, line]).toEqual([true, null, line]);
      ops.add(event.data.op);
    }
    expect([...ops].sort()).toEqual(['created', 'removed', 'restored', 'updated']);
    const store = openStore(db);
    const lines = stdout.trimEnd().split('\n');
    const bodies = createHistory(store)
      .after(0, 10_000)
      .map(({ body }) => body);
    store.close();
    expect(lines.map(productText)).toEqual(bodies);
  });
});
