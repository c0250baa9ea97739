import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createCatalogClient } from '../../src/client/client.ts';
import { readLicenses } from '../../src/client/operations/licenses.ts';
import { systemClock } from '../../src/clock.ts';
import { loadConfig, requireSource } from '../../src/config.ts';
import { temporaryDirectory } from '../support/mirror.ts';
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
  TOKEN,
} from './connection.ts';

const FRESH = 'freshtokenthatmustnotshow';
const VERIFIED = `<credentials><credential reference="me" guid="G" access-token="${FRESH}" email=""/></credentials>`;
const STALE: Reply = { status: 401, body: '<error code="601" message="no longer valid"/>' };

/** A service to which `valid` is the token, until it is reset. */
function service(valid: string, stale = STALE) {
  let token = valid;
  return (asked: Asked): Reply | string => {
    if (asked.url === '/v3/users/reset_access.xml') {
      token = FRESH;
      return '';
    }
    if (asked.url === '/v3/credentials.xml') return VERIFIED;
    return asked.headers['x-token'] === token ? golden('licenses-none.xml') : stale;
  };
}

function paths(asked: readonly Asked[]): string[] {
  return asked.map(({ method, url }) => `${method} ${url}`);
}

describe('a token that is no longer valid', () => {
  it.each([
    ['401', STALE],
    ['200', { body: golden('error-601.xml') }],
    ['601', { status: 601, body: '' }],
    ['403 and JSON', { status: 403, body: '{"errors":[{"code":601,"message":"stale"}]}' }],
  ])('with %s is reset and verified once, and the request repeated', async (_name, stale) => {
    const { url, asked } = await serve(service('another', stale));
    const { caller, tokens } = connectTo(url, { userReference: 'me' });
    expect(await readLicenses(caller, {}, NEVER)).toEqual({ licenses: [] });
    expect(paths(asked)).toEqual([
      ...[
        'GET /v3/licenses.xml',
        'POST /v3/users/reset_access.xml',
        'POST /v3/credentials.xml',
        'GET /v3/licenses.xml',
      ],
    ]);
    expect(asked[1]).toMatchObject({ body: '', headers: { 'x-key': KEY, 'x-token': TOKEN } });
    expect(asked[2]?.body).toContain('<credential reference="me"/>');
    expect(asked[3]?.headers['x-token']).toBe(FRESH);
    await readLicenses(caller, {}, NEVER);
    expect(asked).toHaveLength(5);
    expect(tokens.current()).toBe(FRESH);
  });

  it('fails many requests at once, and is reset once', async () => {
    const { url, asked } = await serve(service('another'));
    const { caller } = connectTo(url, { userReference: 'me', concurrency: 20 });
    await Promise.all(Array.from({ length: 20 }, () => readLicenses(caller, {}, NEVER)));
    expect(asked.filter((one) => one.url.includes('reset_access'))).toHaveLength(1);
    expect(asked.filter((one) => one.url.includes('credentials'))).toHaveLength(1);
  });

  it('is an error that names the variable where nobody knows whose it is', async () => {
    const { url, asked } = await serve(service('another'));
    const error = await failure(readLicenses(connectTo(url).caller, {}, NEVER));
    expect(error).toMatchObject({ code: 'SERVICE_TOKEN', serviceCode: 601, exitCode: 2, retryable: false });
    expect(error.hint).toContain('CATCHWORD_USER_REFERENCE');
    expect(asked).toHaveLength(1);
  });

  it('is not reset again and again where the new one is refused too', async () => {
    const { url, asked } = await serve((one) =>
      one.url.includes('licenses') ? STALE : one.url.includes('reset') ? '' : VERIFIED,
    );
    const { caller } = connectTo(url, { userReference: 'me' });
    expect(await failure(readLicenses(caller, {}, NEVER), FRESH)).toMatchObject({ code: 'SERVICE_TOKEN' });
    expect(asked).toHaveLength(4);
  });

  it('whose user is unknown is given up for a while', async () => {
    const unknown = '<credentials><error code="603" message="unknown" reference="me"/></credentials>';
    const { url, asked } = await serve((one) =>
      one.url.includes('licenses') ? STALE : one.url.includes('reset') ? '' : unknown,
    );
    const clock = hastyClock();
    const { caller } = connectTo(url, { userReference: 'me' }, clock);
    for (let attempt = 0; attempt < 3; attempt++) {
      const error = await failure(readLicenses(caller, {}, NEVER));
      expect(error).toMatchObject({ code: 'SERVICE_UNKNOWN_USER', serviceCode: 603 });
      expect(error.message).toContain('CATCHWORD_USER_REFERENCE');
    }
    expect(asked.filter((one) => one.url.includes('reset'))).toHaveLength(1);
    await clock.sleep(600_000);
    await failure(readLicenses(caller, {}, NEVER));
    expect(asked.filter((one) => one.url.includes('reset'))).toHaveLength(2);
  });

  it('that somebody else reset already is fetched, although the reset is refused', async () => {
    const { url } = await serve((one) => {
      if (one.headers['x-token'] === FRESH) return golden('licenses-none.xml');
      return one.url === '/v3/credentials.xml' ? VERIFIED : STALE;
    });
    expect(await readLicenses(connectTo(url, { userReference: 'me' }).caller, {}, NEVER)).toEqual({ licenses: [] });
  });

  it('is fetched at first where only the reference is known', async () => {
    const { url, asked } = await serve(service(FRESH));
    await readLicenses(connectTo(url, { accessToken: undefined, userReference: 'me' }).caller, {}, NEVER);
    expect(paths(asked)).toEqual(['POST /v3/credentials.xml', 'GET /v3/licenses.xml']);
  });

  it('does not keep those that gave up waiting for the new one', async () => {
    const gone = new AbortController();
    const { url } = await serve((one, _index, response) => {
      if (one.url.includes('licenses')) return STALE;
      gone.abort();
      response.once('close', () => {});
      return null;
    });
    const { caller } = connectTo(url, { userReference: 'me' });
    expect(await failure(readLicenses(caller, {}, gone.signal))).toMatchObject({ code: 'INTERRUPTED' });
  });
});

describe('a token store', () => {
  it('keeps the new token for this user alone, and is read before the environment', async () => {
    const tokenStore = join(temporaryDirectory(), 'token');
    const { url, asked } = await serve(service('another'));
    await readLicenses(connectTo(url, { userReference: 'me', tokenStore }).caller, {}, NEVER);
    expect(readFileSync(tokenStore, 'utf8')).toBe(`${FRESH}\n`);
    expect(statSync(tokenStore).mode & 0o777).toBe(0o600);
    expect(existsSync(`${tokenStore}.lock`)).toBe(false);
    const before = asked.length;
    await readLicenses(connectTo(url, { userReference: 'me', tokenStore }).caller, {}, NEVER);
    expect(asked).toHaveLength(before + 1);
  });

  it('with a newer token than the one that failed makes a reset needless', async () => {
    const tokenStore = join(temporaryDirectory(), 'token');
    const { url, asked } = await serve(service(FRESH));
    const connections = [1, 2].map(() => connectTo(url, { userReference: 'me', tokenStore }));
    writeFileSync(tokenStore, `${FRESH}\n`);
    for (const { caller } of connections) await readLicenses(caller, {}, NEVER);
    expect(paths(asked)).toEqual(Array(4).fill('GET /v3/licenses.xml'));
  });

  it('is shared: processes side by side reset once', async () => {
    const tokenStore = join(temporaryDirectory(), 'token');
    const { url, asked } = await serve(service('another'));
    const connections = Array.from({ length: 5 }, () =>
      connectTo(url, { userReference: 'me', tokenStore }, systemClock),
    );
    await Promise.all(connections.map(({ caller }) => readLicenses(caller, {}, NEVER)));
    expect(asked.filter((one) => one.url.includes('reset'))).toHaveLength(1);
  });

  it('that cannot be written to is refused at the start', () => {
    expect(() => connectTo('http://127.0.0.1:1', { tokenStore: '/nowhere/at/all/token' })).toThrow(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        message: expect.stringContaining('CATCHWORD_TOKEN_STORE') as string,
      }),
    );
  });
});

describe('the catalog', () => {
  const task = { mirror: '', runId: 0, pass: 0, window: { page: 1, perPage: 1 }, from: null, maxAttempts: 1 };

  it.each([
    [401, '{"code":601,"message":"stale"}'],
    [200, '{"errors":["601: the access token is no longer valid"]}'],
    [403, '"601 Access token expired"'],
  ])('is read with a new token after %i %s', async (status, body) => {
    const json = { 'content-type': 'application/json' };
    const { url, asked } = await serve((one) => {
      if (one.url.startsWith('/v3')) return service('another')(one);
      return one.headers['x-service-access-token'] === FRESH
        ? { headers: json, body: '{}' }
        : { status, headers: json, body };
    });
    const config = requireSource(
      loadConfig({
        ...{ CATCHWORD_BASE_URL: url, CATCHWORD_API_KEY: KEY, CATCHWORD_ACCESS_TOKEN: TOKEN },
        CATCHWORD_USER_REFERENCE: 'me',
      }),
    );
    const client = createCatalogClient(config, systemClock);
    try {
      const pages = await Promise.all([client.read(task, NEVER), client.read(task, NEVER)]);
      expect(pages.map(({ text }) => text)).toEqual(['{}', '{}']);
      expect(asked.filter((one) => one.url.includes('reset'))).toHaveLength(1);
    } finally {
      await client.close();
    }
  });
});
