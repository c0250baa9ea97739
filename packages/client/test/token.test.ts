// @module-tag service
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { systemClock } from '@catchword/base/clock';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { openTokenStore } from 'catchword-client/auth/token-store';
import { type Connection, type ConnectionSettings, connect } from 'catchword-client/client-connection';
import { readLicenses } from 'catchword-client/licenses/licenses';
import { expect, it, onTestFinished } from 'vitest';
import {
  type Asked,
  connectTo,
  failure,
  golden,
  hastyClock,
  KEY,
  NEVER,
  type Reply,
  serve,
  settingsOf,
  TOKEN,
} from './connection.ts';
import { FRESH, STALE, service, VERIFIED, verified } from './stale-token.ts';

const RATE = { requests: 10, windowMs: 1_000 };
/** A service where another process reset the token; it rejects a reset of the old one. */
function resetElsewhere(refused: Reply = STALE) {
  return (one: Asked): Reply | string => {
    if (one.url === '/v3/credentials.xml') return VERIFIED;
    if (one.headers['x-token'] !== FRESH) return one.url.includes('reset') ? refused : STALE;
    return one.url.includes('reset') ? '' : golden('licenses-none.xml');
  };
}

/** The same service, which returns references in capitals. */
function inCapitals(one: Asked): Reply | string {
  const answer = resetElsewhere()(one);
  return typeof answer === 'string' ? answer.replace('"me"', '"ME"') : answer;
}

const [LICENSES, VERIFY, RESET] = [
  'GET /v3/licenses.xml',
  'POST /v3/credentials.xml',
  'POST /v3/users/reset_access.xml',
];

function paths(asked: readonly Asked[]): string[] {
  return asked.map(({ method, url }) => `${method} ${url}`);
}

/** A service, and a connection of the user `me` to it. */
async function meeting(reply: Parameters<typeof serve>[0], more: Partial<ConnectionSettings> = {}) {
  const { url, asked } = await serve(reply);
  const { caller, tokens } = connectTo(url, { userReference: 'me', ...more });
  const count = (path: string): number => asked.filter((one) => one.url.includes(path)).length;
  return { asked, count, tokens, read: (signal = NEVER) => readLicenses(caller, {}, signal) };
}

// @rule 4.3-10, 5-7, 7-5
it.each([
  ['401', STALE],
  ['200', { body: golden('error-601.xml') }],
  ['601', { status: 601, body: '' }],
  ['403 and JSON', { status: 403, body: '{"errors":["601: the access token has expired"]}' }],
])(
  'an invalid token that is rejected with %s is reset and verified once, and the request retried',
  async (_name, stale) => {
    const { asked, read, tokens } = await meeting(service({ stale }));
    expect(await read()).toEqual({ licenses: [] });
    expect(paths(asked)).toEqual([
      'GET /v3/licenses.xml',
      'POST /v3/credentials.xml',
      'POST /v3/users/reset_access.xml',
      'POST /v3/credentials.xml',
      'GET /v3/licenses.xml',
    ]);
    expect(asked[2]).toMatchObject({ body: '', headers: { 'x-key': KEY, 'x-token': TOKEN } });
    expect(asked[3]?.body).toContain('<credential reference="me"/>');
    expect(asked[4]?.headers['x-token']).toBe(FRESH);
    await read();
    expect(asked).toHaveLength(6);
    expect(tokens.current()).toBe(FRESH);
  },
);

it('an invalid token that many requests meet at once is reset once', async () => {
  const { count, read } = await meeting(service(), { concurrency: 20 });
  await Promise.all(Array.from({ length: 20 }, () => read()));
  expect(count('reset_access')).toBe(1);
  expect(count('credentials')).toBe(2);
});

/** Time passes only after the first rejection: until then, the calls wait for their turn. */
async function queued(count: number, reply: (asked: Asked) => Reply | string) {
  let hasBegun = false;
  const { url, asked } = await serve(reply);
  const clock = hastyClock();
  const connection: Connection = connect(settingsOf(url, { userReference: 'me' }), RATE, {
    ...clock,
    sleep: async (ms) => {
      while (!hasBegun) {
        await setImmediate();
        hasBegun = connection.tokens.isRenewing();
      }
      await clock.sleep(ms);
    },
  });
  onTestFinished(() => connection.close());
  const calls = Array.from({ length: count }, () => readLicenses(connection.caller, {}, NEVER));
  return { asked, results: await Promise.allSettled(calls) };
}

it('an invalid token is not sent by calls that wait for their turn, and is renewed before them', async () => {
  const { asked, results } = await queued(30, service());
  expect(results.map(({ status }) => status)).toEqual(Array(30).fill('fulfilled'));
  expect(paths(asked).slice(0, 4)).toEqual([LICENSES, VERIFY, RESET, VERIFY]);
  expect(asked).toHaveLength(4 + 30);
});

it('an invalid token that cannot be renewed fails the calls that wait for it, before they are sent', async () => {
  const { asked, results } = await queued(30, (one) => (one.url.includes('licenses') ? STALE : { status: 503 }));
  for (const result of results) expect(result).toMatchObject({ reason: { code: 'SOURCE_UNAVAILABLE' } });
  expect(asked.filter((one) => one.url.includes('licenses'))).toHaveLength(1);
});

it('an invalid token is an error that names the setting if the user is not known', async () => {
  const { url, asked } = await serve(service());
  const error = await failure(readLicenses(connectTo(url).caller, {}, NEVER));
  expect(error).toMatchObject({ code: 'SERVICE_TOKEN', serviceCode: 601, exitCode: 2, retryable: false });
  expect(error.hint).toContain('CATCHWORD_USER_REFERENCE');
  expect(asked).toHaveLength(1);
});

it.each([
  ['that the service says is valid', service(), [TOKEN, FRESH]],
  ['of which the service says 601', service({ before: golden('error-601.xml') }), [TOKEN, FRESH]],
  ['that is older than another stale one', service({ before: verified('stale') }), [TOKEN, 'stale', FRESH]],
])('an invalid token %s is reset', async (_name, reply, used) => {
  const { asked, count, read } = await meeting(reply);
  await read();
  expect(asked.flatMap((one) => (one.url.includes('licenses') ? one.headers['x-token'] : []))).toEqual(used);
  expect(count('reset')).toBe(1);
});

it.each([
  ['that another process has reset', resetElsewhere(), {}, [LICENSES, VERIFY, LICENSES]],
  ['whose reference comes in capitals', inCapitals, {}, [LICENSES, VERIFY, LICENSES]],
  ['that is not configured', resetElsewhere(), { accessToken: undefined }, [VERIFY, LICENSES]],
])('an invalid token %s is fetched and not reset', async (_name, reply, more, expected) => {
  const { asked, read } = await meeting(reply, more);
  expect(await read()).toEqual({ licenses: [] });
  expect(paths(asked)).toEqual(expected);
});

it.each([
  ['without an account', '<credentials/>', ''],
  ['for another user', VERIFIED.replace('"me"', '"you"'), ''],
  ['without a token', '<credentials><credential reference="me" guid="G"/></credentials>', ''],
  ['with a token that no header can hold', verified('two&#10;lines'), 'no header'],
])('an invalid token is not reset if the service answers %s', async (_name, before, message) => {
  const { asked, read } = await meeting(service({ before }));
  const error = await failure(read(), 'lines');
  expect(error).toMatchObject({ code: 'SERVICE_ERROR', message: expect.stringContaining(message) as string });
  expect(paths(asked)).toEqual([LICENSES, VERIFY]);
});

it.each(['another', TOKEN])(
  'an invalid token is reset only once if the new one is rejected too (%s)',
  async (before) => {
    let given = before;
    const { count, read } = await meeting((one) => {
      if (one.url.includes('licenses')) return STALE;
      if (one.url.includes('credentials')) return verified(given);
      given = `${given}x`;
      return '';
    });
    expect(await failure(read())).toMatchObject({ code: 'SERVICE_TOKEN' });
    expect(count('reset')).toBe(1);
  },
);

it('an invalid token that stays the same after a reset is not reset again for a while', async () => {
  const { count, read } = await meeting((one) =>
    one.url.includes('licenses') ? STALE : one.url.includes('reset') ? '' : verified(TOKEN),
  );
  for (let attempt = 0; attempt < 3; attempt++) {
    const error = await failure(read());
    expect(error).toMatchObject({ code: 'SERVICE_TOKEN', message: expect.stringContaining('old one') as string });
  }
  expect(count('reset')).toBe(1);
});

it('an invalid token of an unknown user is not reset, and not verified again for a while', async () => {
  const unknown = '<credentials><error code="603" message="unknown" reference="me"/></credentials>';
  const { url, asked } = await serve((one) => (one.url.includes('licenses') ? STALE : unknown));
  const clock = hastyClock();
  const { caller } = connectTo(url, { userReference: 'me' }, clock);
  for (let attempt = 0; attempt < 3; attempt++) {
    const error = await failure(readLicenses(caller, {}, NEVER));
    expect(error).toMatchObject({ code: 'SERVICE_UNKNOWN_USER', serviceCode: 603 });
    expect(error.setting).toBe('CATCHWORD_USER_REFERENCE');
    expect(error.message.includes('remembered; the service is asked again in 60 s')).toBe(attempt > 0);
  }
  expect(asked.filter((one) => one.url.includes('credentials'))).toHaveLength(1);
  await clock.sleep(60_000);
  await failure(readLicenses(caller, {}, NEVER));
  expect(asked.filter((one) => one.url.includes('credentials'))).toHaveLength(2);
  expect(asked.filter((one) => one.url.includes('reset'))).toEqual([]);
});

it.each<[string, Reply]>([
  ['that is cut short', { body: '<credentials><credential ref' }],
  ['with a passing 401', { status: 401, body: '' }],
  ['with a passing 403', { status: 403, body: '' }],
])('an invalid token is renewed by the next call after an answer %s', async (_name, passing) => {
  let isFirst = true;
  const healthy = resetElsewhere();
  const { read } = await meeting((one) => {
    if (!one.url.includes('credentials') || !isFirst) return healthy(one);
    isFirst = false;
    return passing;
  });
  await failure(read());
  expect(await read()).toEqual({ licenses: [] });
});

it.each([
  ['601', STALE],
  ['404', { status: 404, body: golden('error-474.xml') }],
  ['401', { status: 401, body: '' }],
  ['403', { status: 403, body: '' }],
])(
  'an invalid token that another process resets meanwhile is fetched, although the reset is rejected with %s',
  async (_name, reset) => {
    const { count, read } = await meeting(service({ reset }));
    expect(await read()).toEqual({ licenses: [] });
    expect(count('reset')).toBe(1);
  },
);

it('an invalid token is an error if the reset is rejected and the token is the same', async () => {
  const { read } = await meeting((one) => {
    if (one.url.includes('credentials')) return verified(TOKEN);
    return one.url.includes('reset') ? { status: 403, body: '<error message="not you"/>' } : STALE;
  });
  const error = await failure(read());
  expect(error).toMatchObject({ code: 'SERVICE_FORBIDDEN', status: 403 });
});

it('an invalid token does not delay calls that are aborted while it is renewed', async () => {
  const gone = new AbortController();
  const { read } = await meeting((one, _index, response) => {
    if (one.url.includes('licenses')) return STALE;
    gone.abort();
    response.once('close', () => {});
    return null;
  });
  expect(await failure(read(gone.signal))).toMatchObject({ code: 'INTERRUPTED' });
});

it('an explicit reset fetches the token first', async () => {
  const { asked, tokens } = await meeting(service(), { accessToken: undefined });
  await tokens.reset(NEVER);
  expect(paths(asked)).toEqual([VERIFY, RESET, VERIFY]);
  expect(asked[1]?.headers['x-token']).toBe(TOKEN);
  expect(tokens.current()).toBe(FRESH);
});

it('an explicit reset resets the valid token if another process had replaced the known one', async () => {
  let token = 'second';
  const { count, tokens } = await meeting((one) => {
    if (one.url.includes('credentials')) return verified(token);
    if (one.headers['x-token'] !== token) return STALE;
    token = FRESH;
    return '';
  });
  await tokens.reset(NEVER);
  expect(tokens.current()).toBe(FRESH);
  expect(count('reset')).toBe(2);
});

it('an explicit reset fails if the service returns the old token afterwards', async () => {
  const { tokens } = await meeting((one) => (one.url.includes('reset') ? '' : verified(TOKEN)));
  const error = await failure(tokens.reset(NEVER));
  expect(error).toMatchObject({ code: 'SERVICE_TOKEN', message: expect.stringContaining('old one') as string });
});

it('an explicit reset runs after a renewal in progress, and once for all callers', async () => {
  let ask = (): void => {};
  let token = 'second';
  const { count, read, tokens } = await meeting((one) => {
    if (one.url.includes('credentials')) {
      ask();
      return verified(token);
    }
    if (one.headers['x-token'] !== token) return STALE;
    if (!one.url.includes('reset')) return golden('licenses-none.xml');
    token = FRESH;
    return '';
  });
  const resets: Promise<string>[] = [];
  ask = () => {
    if (resets.length === 0) resets.push(tokens.reset(NEVER), tokens.reset(NEVER));
  };
  await read();
  expect(resets).toHaveLength(2);
  await Promise.all(resets);
  expect(tokens.current()).toBe(FRESH);
  expect(count('reset')).toBe(1);
});

it('a token store keeps the new token in a private file, and takes precedence over the setting', async () => {
  const tokenStore = join(temporaryDirectory(), 'token');
  const { url, asked } = await serve(service());
  await readLicenses(connectTo(url, { userReference: 'me', tokenStore }).caller, {}, NEVER);
  expect(readFileSync(tokenStore, 'utf8')).toMatch(new RegExp(`^${FRESH}\nsha256:[0-9a-f]{64}\n$`));
  expect(statSync(tokenStore).mode & 0o777).toBe(0o600);
  expect(existsSync(`${tokenStore}.lock`)).toBe(false);
  const before = asked.length;
  await readLicenses(connectTo(url, { userReference: 'me', tokenStore }).caller, {}, NEVER);
  expect(asked).toHaveLength(before + 1);
});

it('a token store with a newer token makes a reset unnecessary', async () => {
  const tokenStore = join(temporaryDirectory(), 'token');
  const { url, asked } = await serve(resetElsewhere());
  const connections = [1, 2].map(() => connectTo(url, { userReference: 'me', tokenStore }));
  const owner = { origin: url, apiKey: KEY, reference: 'me', configured: undefined };
  await openTokenStore(tokenStore, owner, systemClock).write(FRESH);
  for (const { caller } of connections) await readLicenses(caller, {}, NEVER);
  expect(paths(asked)).toEqual(Array(4).fill(LICENSES));
});

it('a token store is shared by connections, which reset once', async () => {
  const tokenStore = join(temporaryDirectory(), 'token');
  const { url, asked } = await serve(service());
  const connections = Array.from({ length: 5 }, () => connectTo(url, { userReference: 'me', tokenStore }, systemClock));
  await Promise.all(connections.map(({ caller }) => readLicenses(caller, {}, NEVER)));
  expect(asked.filter((one) => one.url.includes('reset'))).toHaveLength(1);
});

it('a token store that cannot be written is rejected at the start', () => {
  expect(() => connectTo('http://127.0.0.1:1', { tokenStore: '/nowhere/at/all/token' })).toThrow(
    expect.objectContaining({ code: 'CONFIG_INVALID', setting: 'CATCHWORD_TOKEN_STORE' }),
  );
});
