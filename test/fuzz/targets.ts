import { deepStrictEqual, strictEqual } from 'node:assert';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CatchwordError, type ErrorCode } from '@catchword/base/errors';
import { hiding } from '@catchword/base/redact';
import { canonicalJson, changedPointers, difference, revert, sameContent } from '@catchword/catalog/content';
import { elementsOf, indentedJson } from '@catchword/catalog/json-text';
import { productsOf } from '@catchword/catalog/page-items';
import { validateLookup, validatePage } from '@catchword/catalog/validate-page';
import { readSettings } from '@catchword/settings/config';
import { OPTIONS } from '@catchword/settings/option-table';
import { readXml } from '@catchword/xml/read';
import { messageIn } from 'catchword-client/errors/error-message';
import { parseAnswer } from 'catchword-client/http/answer';
import type { Answer, Request } from 'catchword-client/http/exchange';
import { recordsIn, unexpected } from 'catchword-client/http/xml-records';
import { submissionsIn } from '../../src/cli/commands/credentials/credential-input.ts';
import { parseEvent, productText } from '../../src/events/events.ts';
import { streamStart } from '../../src/http/change-feed.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { openStore } from '../../src/store/store.ts';

export interface Target {
  readonly seeds: readonly string[];
  /** Throws, or rejects, if the input shows a defect. */
  readonly make: () => (input: Buffer) => void | Promise<void>;
}

/** Runs `work`. Errors of the given codes are answers to bad input; any other error is a defect. */
function allowing<T>(codes: readonly ErrorCode[], work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof CatchwordError && codes.includes(error.code)) return undefined;
    throw error;
  }
}

const SECRET = 'Xq7-token-4711';
const hide = hiding(() => [SECRET]);

function answerOf(text: string): Answer {
  const [requestedAt, receivedAt] = [0, 1];
  return {
    status: 200,
    headers: {},
    text,
    body: Buffer.from(text),
    origin: 'http://service',
    hide,
    requestedAt,
    receivedAt,
  };
}

const READ: Request = { method: 'GET', path: '/x', format: 'json', token: true, repeatable: true, fields: ['vbid'] };

/** Reads an answer. Which code an error of the service has depends on what it says. */
function answers<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof CatchwordError) || !/^(SERVICE|SOURCE|XML|NOT_FOUND)/.test(error.code)) throw error;
    strictEqual(error.message.includes(SECRET), false, 'the error shows the secret');
    return undefined;
  }
}

function checkJson(text: string): void {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return;
  }
  const canonical = canonicalJson(text);
  strictEqual(canonicalJson(canonical), canonical);
  strictEqual(sameContent(text, ` ${text}`), true);
  // 0 and -0 are one number.
  const unsigned = JSON.parse(text, (_key, one) => (one === 0 ? 0 : one));
  deepStrictEqual(JSON.parse(canonical), unsigned);
  deepStrictEqual(JSON.parse(indentedJson(text)), value);
  if (Array.isArray(value))
    deepStrictEqual(
      elementsOf(text).map((one) => JSON.parse(one)),
      value,
    );
}

const NO_PAGE: readonly ErrorCode[] = ['PAGE_INVALID', 'PAGE_BROKEN', 'SOURCE_UNAVAILABLE'];
const PAGE =
  '{"num_items":3,"page":1,"per_page":5,"total_pages":1,"items":[{"vbid":"A","title":"One","price":10.50},' +
  '{"vbid":17,"title":"\\u00e9","variants":[{"sku":"A-1","prices":[{"currency":"USD","value":"9.90"}]}],"n":1e400},{"vbid":""}]}';

export const TARGETS: Readonly<Record<string, Target>> = {
  page: {
    seeds: [
      PAGE,
      '{"num_items":"1","page":1,"per_page":5,"total_pages":"1","items":[{"vbid":"A","items":[]}],"items":[]}',
    ],
    make: () => (input) => {
      const bytes = new Uint8Array(input);
      allowing(NO_PAGE, () => validateLookup(bytes, 'A', { page: 1, perPage: 5 }));
      const page = allowing(NO_PAGE, () => validatePage(bytes, { page: 1, perPage: 5 }, true));
      // Of a page that is not JSON, the other items are read.
      if (page === undefined || page.isDamaged === true) return;
      const { items } = JSON.parse(input.toString('utf8')) as { items: unknown[] };
      const products = productsOf(page);
      strictEqual(products.length, items.length);
      strictEqual((JSON.parse(String(page.items.rows)) as unknown[]).length, items.length);
      strictEqual(products.filter((one) => one === null).length, page.rejected.length);
      for (const [at, product] of products.entries()) {
        if (product === null) continue;
        deepStrictEqual(JSON.parse(product.body), items[at]);
        checkJson(product.body);
      }
      // Two products of a page are as good as two versions of one.
      for (const older of products) {
        for (const newer of products) {
          if (older === null || newer === null) continue;
          const changed = difference(older.body, newer.body);
          strictEqual(sameContent(revert(newer.body, changed), older.body), true);
          strictEqual(changedPointers(changed).length === 0, sameContent(older.body, newer.body));
        }
      }
    },
  },
  json: {
    seeds: ['{"a":[1.50,{"b":"\\u0041\\n"}],"":null}', '[1e2,100,-0,0.0,"\\ud83d\\ude00",[],{}]', PAGE],
    make: () => (input) => {
      const text = input.toString('utf8');
      // A page that is nested deeper is rejected before its items are read.
      if ((text.match(/[[{]/g) ?? []).length < 64) checkJson(text);
      const value = allowing(['EVENT_INVALID'], () => parseEvent(text));
      if (value !== undefined) productText(text);
    },
  },
  answer: {
    seeds: [
      '{"vbid":"A","title":"x"}',
      '{"errors":{"title":["is missing"],"code":422}}',
      `{"code":"601","message":"${SECRET}"}`,
      PAGE,
    ],
    make: () => (input) => {
      const text = input.toString('utf8');
      for (const method of ['GET', 'PUT'] as const) answers(() => parseAnswer(answerOf(text), { ...READ, method }));
      answers(() => parseAnswer(answerOf(text), { ...READ, format: 'page' }));
      strictEqual(messageIn(text, hide).text.includes(SECRET), false);
    },
  },
  xml: {
    seeds: [
      '<?xml version="1.0"?>\n<licenses><license sku="A" type="online" expiration="never"/></licenses>',
      '<errors><error code="601" message="expired &amp; gone"/></errors>',
      '<error-response><error-code>904</error-code><error-text>taken</error-text></error-response>',
      '<user><reference>r</reference><access-token><![CDATA[a]]>&#65;</access-token></user><!-- c -->',
    ],
    make: () => (input) => {
      const text = input.toString('utf8');
      const request: Request = { ...READ, format: 'xml' };
      const answer = answers(() => parseAnswer(answerOf(text), request));
      const elements = allowing(['XML_INVALID'], () => readXml(text));
      if (answer === undefined || elements === undefined) return;
      recordsIn(elements, ['license']);
      unexpected('licenses', { ...answer, elements });
    },
  },
  'sink address': {
    seeds: [
      'jsonl:out/changes.jsonl?max_bytes=1GB&gzip=true',
      'webhook+https://shop.example/hook?key=abc#batch=10',
      'postgres://u:p%40ss@db:5432/shop?table=public.products',
      'redis://:pass@127.0.0.1:6379/0?stream=catalog',
      'nats://token@127.0.0.1:4222?subject=a.b&stream=S',
      'module:./sink.mjs?token=abcdef',
    ],
    make: () => (input) => {
      const url = input.toString('utf8');
      const setting = { env: 'CATCHWORD_SINK_A', name: 'a', url, secret: undefined };
      allowing(['CONFIG_INVALID'], () => sinkConfig(setting));
    },
  },
  settings: {
    seeds: [
      '/price,/variants/0,/a~1b',
      '50/min',
      '24h',
      '0 2 * * *',
      '1%',
      'http://127.0.0.1:8080/x',
      'Europe/Berlin',
      '.xml',
      '0640',
    ],
    make: () => (input) => {
      const given = input.toString('utf8');
      // A file's name would be read.
      const environment = Object.fromEntries(Object.values(OPTIONS).map(({ env }) => [env, given]));
      for (const problem of readSettings(environment).problems) strictEqual(problem.code, 'CONFIG_INVALID');
    },
  },
  accounts: {
    seeds: [
      'reference,guid\nr-1,g-1\n"r,""2",\n',
      '{"reference":"r"}\n{"guid":"g","access-token":"t"}\n',
      'reference;guid\r\na;b\r\n',
    ],
    make: () => async (input) => {
      const outcomes: string[] = [];
      // How a file is cut into chunks makes no difference, except to which of its errors is found first.
      for (const size of [input.length || 1, 1, 7]) {
        const chunks = Array.from({ length: Math.ceil(input.length / size) }, (_, at) =>
          input.subarray(at * size, (at + 1) * size),
        );
        let read: unknown[] = [];
        try {
          const bytes = (async function* () {
            yield* chunks;
          })();
          for await (const submission of submissionsIn('-', bytes, false)) read.push(submission);
        } catch (error) {
          if (!(error instanceof CatchwordError)) throw error;
          strictEqual(error.code, 'USAGE');
          read = ['rejected'];
        }
        outcomes.push(JSON.stringify(read));
      }
      strictEqual(new Set(outcomes).size, 1, outcomes.join(' or '));
    },
  },
  mirror: {
    seeds: [
      'abc:12:1700000000000',
      'latest',
      '12',
      'two words a* "q" -x NEAR(a b)',
      'title:x OR ^y',
      '978-0-306-40615-7',
    ],
    make: () => {
      const directory = mkdtempSync(join(tmpdir(), 'catchword-fuzz-'));
      const store = openStore(join(directory, 'mirror.db'));
      process.once('exit', () => {
        store.close();
        rmSync(directory, { recursive: true, force: true });
      });
      return (input) => {
        const text = input.toString('utf8');
        const { reset, from, block } = streamStart(store, text, true);
        strictEqual(from, 0);
        strictEqual(block.endsWith('\n\n') && !block.slice(0, -2).includes('\n\n'), true, 'the block has a blank line');
        if (reset === null) strictEqual(block.includes('event: reset'), false);
        allowing(['USAGE'], () => store.search(text, 10));
      };
    },
  },
};
