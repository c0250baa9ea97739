import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CatchwordError, messageOf } from '@catchword/base/errors';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { until } from '../../src/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { openStore } from '../../src/store/store.ts';
import { runHere } from '../support/in-process.ts';

/** Characters with a meaning in an address. */
const HOSTILE = [...'/?#@:&=%+\\[] ;|'.split(''), '%2', '%40', '?table=', '#b='];

/** Passwords of pieces that occur nowhere else, so that each piece in a message is a leak. */
const passwords = fc
  .tuple(
    fc.constantFrom('', '4711', 'Qzx'),
    fc.array(fc.tuple(fc.constantFrom(...HOSTILE), fc.constantFrom('Wkv', 'Jqh', 'Zpw', '8642', 'Xgq')), {
      minLength: 1,
      maxLength: 5,
    }),
  )
  .map(([first, rest]) => ({
    text: `${first}${rest.map(([hostile, piece]) => `${hostile}${piece}`).join('')}`,
    pieces: [first, ...rest.map(([, piece]) => piece)].filter((piece) => piece !== ''),
  }));

/** Port 1 is closed: every call of a sink fails. */
const AT = '127.0.0.1:1';
const ADDRESSES: Readonly<Record<string, (password: string) => string>> = {
  postgres: (password) => `postgres://shop:${password}@${AT}/db?table=books`,
  'postgres by option': (password) => `postgres://shop@${AT}/db?table=books&password=${password}`,
  mysql: (password) => `mysql://shop:${password}@${AT}/db?table=books`,
  redis: (password) => `redis://shop:${password}@${AT}/0?stream=s`,
  'redis without a user': (password) => `redis://:${password}@${AT}`,
  rediss: (password) => `rediss://shop:${password}@${AT}`,
  nats: (password) => `nats://shop:${password}@${AT}?subject=a.b`,
  'nats with a token': (password) => `nats://${password}@${AT}`,
  webhook: (password) => `webhook+http://${AT}/hook?key=${password}#allow=private`,
  'webhook with a user': (password) => `webhook+http://shop:${password}@${AT}/hook#allow=private`,
  's3 by option': (password) => `s3://books/x?endpoint=http://${AT}&secret=${password}`,
  's3 by endpoint': (password) => `s3://books/x?endpoint=http://shop:${password}@${AT}`,
  jsonl: (password) => `jsonl:out.jsonl?key=${password}`,
  module: (password) => `module:examples/files-sink.mjs?token=${password}`,
};

/** Collects all texts about a sink with this address. */
async function shown(url: string): Promise<string> {
  const texts: string[] = [];
  const note = (error: unknown): void => {
    texts.push(messageOf(error), error instanceof CatchwordError ? (error.hint ?? '') : '');
  };
  try {
    const config = sinkConfig({ env: 'CATCHWORD_SINK_SHOP', name: 'shop', url, secret: undefined });
    texts.push(config.address, config.identity);
    try {
      const sink = await config.make();
      await sink.check(AbortSignal.timeout(5_000)).then(
        (text) => texts.push(text),
        (error: unknown) => texts.push(config.errorText(error)),
      );
      await sink.close();
    } catch (error) {
      note(error);
    }
  } catch (error) {
    note(error);
  }
  return texts.join('\n');
}

it.each(Object.entries(ADDRESSES))(
  'no message shows any piece of a hostile password: %s',
  { timeout: 60_000 },
  async (_, address) => {
    await fc.assert(
      fc.asyncProperty(passwords, async ({ text, pieces }) => {
        const read = await shown(address(text));
        for (const piece of pieces) expect(read, address(text)).not.toContain(piece);
      }),
      { numRuns: 150 },
    );
  },
);

it.each([
  ['postgres://shop:Wkv/Jqh@db.example/shop', 'postgres://shop:4711/Jqh@db.example/shop'],
  ['redis://shop:Wkv?Jqh@db.example', 'redis://shop:4711?Jqh@db.example'],
  ['nats://shop:Wkv#Jqh@db.example', 'nats://shop:4711#Jqh@db.example'],
])('names the likely cause: %s', (...addresses) => {
  for (const url of addresses) {
    expect(() => sinkConfig({ env: 'CATCHWORD_SINK_SHOP', name: 'shop', url, secret: undefined })).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('percent-encoded: %2F') }),
    );
  }
});

it.each([
  ['REDIS_URL', 'redis://shop:4711/Jqh@cache.example'],
  ['REDIS_URL', 'redis://shop:4711?Jqh@cache.example'],
  ['CATCHWORD_BASE_URL', 'https://shop:4711/Jqh@service.example'],
  ['CATCHWORD_BASE_URL', 'https://shop:4711#Jqh@service.example'],
  ['CATCHWORD_API_KEY_FILE', '4711-Jqh'],
  ['CATCHWORD_SINK_SHOP_FILE', 'postgres://shop:4711Jqh@db.example'],
])('an error does not show an invalid value of %s: %s', (name, value) => {
  expect(() => checkedSettings({ [name]: value }, 'nothing', true)).toThrow(
    expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.not.stringMatching(/4711|Jqh/) }),
  );
});

it('the output of relay and doctor shows no piece of a password', async () => {
  const directory = temporaryDirectory();
  writeFileSync(
    join(directory, 'talkative.mjs'),
    'export const createSink = ({ url }) => { throw new Error(url.href); };',
  );
  const addresses = [
    'postgres://shop:4711?Wkv@127.0.0.1:1/shop',
    'webhook+https://hooks.example/hook?key=Jqh#Wkv',
    'module:talkative.mjs?token=Jqh&Wkv',
  ];
  for (const [at, url] of addresses.entries()) {
    const db = join(directory, `${at}.db`);
    const env = {
      CATCHWORD_BASE_URL: 'http://127.0.0.1:1',
      CATCHWORD_API_KEY: 'K',
      CATCHWORD_DB: db,
      CATCHWORD_SINK_SHOP: url,
      LOG_LEVEL: 'trace',
      CATCHWORD_HTTP_PORT: 'off',
    };
    const ending = new AbortController();
    const relaying = runHere(['relay'], env, directory, { signal: ending.signal });
    await until('the sink has failed', () => {
      if (!existsSync(db)) return false;
      const store = openStore(db);
      const { error = null } = store.sinks.get('shop') ?? {};
      store.close();
      return error !== null;
    });
    ending.abort();
    const relayed = await relaying;
    for (const args of [['relay'], ['sink', 'list'], ['doctor']]) {
      const { stdout, stderr } = args[0] === 'relay' ? relayed : await runHere(args, env, directory);
      expect(`${stdout}${stderr}`, `${args.join(' ')} ${url}`).not.toMatch(/4711|Jqh|Wkv/);
      expect(`${stdout}${stderr}`).toMatch(/SHOP|shop|no mirror|there is/);
    }
  }
});

it('an error masks a password in what comes from outside, and none of its own words', async () => {
  const url = `postgres://u:pass@${AT}/db?password=connect`;
  const config = sinkConfig({ env: 'CATCHWORD_SINK_SHOP', name: 'shop', url, secret: undefined });
  const sink = await config.make();
  const said = await sink.check(AbortSignal.timeout(5_000)).catch((error: unknown) => config.errorText(error));
  expect(said).toBe('PostgreSQL: [secret] ECONNREFUSED 127.0.0.1:1');
  const own = new CatchwordError('CONFIG_INVALID', 'the address contains a user name or password');
  expect(config.errorText(own)).toBe('the address contains a user name or password');
  expect(config.errorText(new Error('pass, password and compass'))).toBe('[secret], password and compass');
});

it('a refused address is explained without telling the password: u:pass@', async () => {
  const url = 'webhook+https://u:pass@hooks.example/hook';
  const config = sinkConfig({ env: 'CATCHWORD_SINK_SHOP', name: 'shop', url, secret: undefined });
  await expect(config.make()).rejects.toThrow('the address contains a user name or password');
});

it('an error of a module is masked, also if it is a SinkError or escapes', async () => {
  const directory = temporaryDirectory();
  const file = join(directory, 'loud.mjs');
  const error = `Object.assign(new Error('no ' + url.searchParams.get('token')), { name: 'SinkError', failure: 'gone' })`;
  const calls = 'open: async () => null, deliver() {}, close() {}';
  const check = `check: () => { if (url.searchParams.has('late')) return new Promise(() => setImmediate(() => { throw ${error}; })); throw ${error}; }`;
  const sink = `{ batch: { events: 5, chars: 5 }, ${calls}, ${check} }`;
  writeFileSync(file, `export const createSink = ({ url }) => (${sink});`);
  for (const late of ['', 'late=1&']) {
    const url = `module:${file}?${late}token=Wkv-4711`;
    const config = sinkConfig({ env: 'CATCHWORD_SINK_SHOP', name: 'shop', url, secret: undefined });
    const made = await config.make();
    const said = await made.check(AbortSignal.timeout(5_000)).catch((thrown: unknown) => config.errorText(thrown));
    expect(said).toMatch(/no \[secret\]$/);
  }
});
