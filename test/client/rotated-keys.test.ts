import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { serveHttp } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { runHere } from '../support/in-process.ts';

const PAGE = { num_items: 1, page: 1, per_page: 1_000, total_pages: 1, items: [{ vbid: 'A' }] };
const EMPTY = { ...PAGE, num_items: 0, total_pages: 0, items: [] };

type Refusal = readonly [status: number, body: object];

const BY_STATUS: Refusal = [401, { message: 'unknown login' }];
const BY_CODE: Refusal = [401, { code: 601, message: 'the access token is not valid' }];
const FORBIDDEN: Refusal = [403, { message: 'unknown login' }];

/** A service that was told new secrets. At its first refusal, the new ones are written into the files of the settings. */
async function scene(
  rotated: 'key' | 'token',
  [status, body]: Refusal,
  onRefusal = (write: () => void): void => write(),
) {
  const directory = temporaryDirectory();
  const secrets = { key: 'an-old-key', token: 'an-old-token' };
  const pathOf = (name: string) => join(directory, name);
  const write = () => {
    for (const [name, value] of Object.entries(secrets)) writeFileSync(pathOf(name), `${value}\n`);
  };
  write();
  secrets[rotated] = `a-new-${rotated}`;
  let refusals = 0;
  const isRight = ({ headers }: IncomingMessage): boolean =>
    headers['x-service-api-key'] === secrets.key && headers['x-service-access-token'] === secrets.token;
  const url = await serveHttp((request, response) => {
    const isAccepted = isRight(request);
    const answer = request.url?.includes('from=') === true ? EMPTY : PAGE;
    if (!isAccepted) {
      refusals++;
      onRefusal(write);
    }
    response
      .writeHead(isAccepted ? 200 : status, { 'content-type': 'application/json' })
      .end(JSON.stringify(isAccepted ? answer : body));
  });
  const settings = {
    CATCHWORD_BASE_URL: url,
    CATCHWORD_API_KEY_FILE: pathOf('key'),
    CATCHWORD_ACCESS_TOKEN_FILE: pathOf('token'),
    CATCHWORD_RATE_LIMIT: 'off',
    LOG_LEVEL: 'silent',
  };
  return { refusals: () => refusals, pathOf, run: (verb: string) => runHere([verb], settings, directory) };
}

const CASES = [
  ['API key', 'key', BY_STATUS],
  ['API key of a service that answers 403', 'key', FORBIDDEN],
  ['access token', 'token', BY_STATUS],
  ['access token of a service that answers 601', 'token', BY_CODE],
] as const;

it.each(CASES.flatMap((one) => [['sync', ...one] as const, ['catalog', ...one] as const]))(
  '%s reads the file of its %s again when the service refuses it',
  async (verb, _, rotated, refusal) => {
    const { refusals, run } = await scene(rotated, refusal);
    const { code, stderr } = await run(verb);
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('error')]);
    expect(refusals()).toBe(1);
  },
);

it.each(CASES)('the file of an %s that has not changed is not tried again', async (_, rotated, refusal) => {
  const { refusals, run } = await scene(rotated, refusal, () => {});
  const { code } = await run('catalog');
  expect(code).toBe(2);
  expect(refusals()).toBe(1);
});

it.each(CASES)(
  'a directory in the place of the file of an %s is named when the service refuses the login',
  async (_, rotated, refusal) => {
    const { run, pathOf } = await scene(rotated, refusal, () => {
      rmSync(pathOf(rotated));
      mkdirSync(pathOf(rotated));
    });
    const { code, stderr } = await run('sync');
    expect(code).toBe(2);
    const setting = rotated === 'key' ? 'CATCHWORD_API_KEY_FILE' : 'CATCHWORD_ACCESS_TOKEN_FILE';
    const path = pathOf(rotated);
    expect(stderr).toContain(
      `; an earlier value was sent: ${setting}: cannot read the file that it names, ${path} (it is a directory, EISDIR)`,
    );
  },
);

it('a file of an access token that cannot be read does not keep a new API key from being taken', async () => {
  const { run, pathOf } = await scene('key', BY_STATUS, (write) => {
    write();
    rmSync(pathOf('token'));
  });
  expect(await run('sync')).toMatchObject({ code: 0 });
});
