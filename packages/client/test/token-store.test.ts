// @module-tag service
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '@catchword/base/clock';
import { holdFile } from '@catchword/base/file-lock';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { openTokenStore, type TokenOwner } from 'catchword-client/auth/token-store';
import { expect, it, onTestFinished, vi } from 'vitest';

const OWNER: TokenOwner = { origin: 'https://a.example', apiKey: 'KEY', reference: 'me', configured: 'old' };
const TOKEN = 'thetoken';
const NEVER = new AbortController().signal;
/** A clock that rejects a wait for a lock. */
const IMPATIENT: Clock = {
  ...systemClock,
  sleep: async () => {
    throw new Error('it waits');
  },
};

function pathOf(): string {
  return join(temporaryDirectory(), 'token');
}

function storeAt(path: string, owner: Partial<TokenOwner> = {}, clock = systemClock) {
  return openTokenStore(path, { ...OWNER, ...owner }, clock);
}

const REFUSED = expect.objectContaining({ code: 'CONFIG_INVALID', setting: 'CATCHWORD_TOKEN_STORE' }) as Error;

function modeOf(path: string): number {
  return lstatSync(path).mode & 0o777;
}

it('a token file is read only by the owner of the token', async () => {
  const path = pathOf();
  await storeAt(path).write(TOKEN);
  expect(storeAt(path).read()).toBe(TOKEN);
  for (const other of [{ origin: 'https://b.example' }, { apiKey: 'OTHER' }, { reference: 'you' }]) {
    expect(storeAt(path, other).read()).toBeUndefined();
  }
  expect(storeAt(path, { reference: undefined }).read()).toBeUndefined();
  expect(storeAt(path, { configured: 'other' }).read()).toBe(TOKEN);
  expect(readFileSync(path, 'utf8')).not.toMatch(/a\.example|KEY|me/);
});

it('a token file that is empty has no token, and is replaced by a private file', async () => {
  const path = pathOf();
  writeFileSync(path, '', { mode: 0o644 });
  const store = storeAt(path);
  expect(store.read()).toBeUndefined();
  await store.write(TOKEN);
  expect(store.read()).toBe(TOKEN);
  expect(modeOf(path)).toBe(0o600);
});

it.each([' ', '\n', `${TOKEN}\n`, `${TOKEN}\nsha256:0\n`, 'A=1\nB=2\n', `${TOKEN}\nsha256:${'0'.repeat(64)}\n#`])(
  'a token file with other content is rejected and left alone: %j',
  async (content) => {
    const path = pathOf();
    const store = storeAt(path);
    writeFileSync(path, content);
    const before = readFileSync(path);
    expect(() => storeAt(path)).toThrow(REFUSED);
    expect(() => store.read()).toThrow(REFUSED);
    await expect(store.write(TOKEN)).rejects.toThrow(REFUSED);
    expect(readFileSync(path)).toEqual(before);
  },
);

it.each(['', `${tmpdir()}/not-there/`])('a token file without a file name is rejected at the start: %j', (path) => {
  expect(() => storeAt(path)).toThrow(REFUSED);
});

it.each(['/dev/null', tmpdir()])('a token file that is not a regular file is rejected: %s', (path) => {
  expect(() => storeAt(path)).toThrow(REFUSED);
});

it('a token file that others could read is made private', async () => {
  const path = pathOf();
  await storeAt(path).write(TOKEN);
  chmodSync(path, 0o644);
  expect(storeAt(path).read()).toBe(TOKEN);
  expect(modeOf(path)).toBe(0o600);
});

it.each(['that exists', 'that does not exist yet'])(
  'a token file %s is replaced behind a symbolic link, which is kept',
  async (which) => {
    const path = pathOf();
    const target = `${path}.target`;
    if (which === 'that exists') writeFileSync(target, '');
    symlinkSync('token.target', path);
    const store = storeAt(path);
    await store.write(TOKEN);
    expect(readlinkSync(path)).toBe('token.target');
    expect(lstatSync(target).isFile()).toBe(true);
    expect(storeAt(target).read()).toBe(TOKEN);
  },
);

it('a token file is written without following a leftover link or keeping a leftover mode', async () => {
  const path = pathOf();
  const next = `${path}.new`;
  const victim = `${path}.victim`;
  writeFileSync(victim, 'important');
  symlinkSync(victim, next);
  const store = storeAt(path);
  await store.write('first');
  expect(readFileSync(victim, 'utf8')).toBe('important');
  writeFileSync(next, 'left behind', { mode: 0o644 });
  await store.write(TOKEN);
  expect(store.read()).toBe(TOKEN);
  expect(modeOf(path)).toBe(0o600);
});

it('a token file that cannot be written is an error', async () => {
  const path = pathOf();
  const store = storeAt(path);
  mkdirSync(`${path}.new`);
  await expect(store.write(TOKEN)).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
});

it('the lock of a token store is waited for, and free when its holder releases it', async () => {
  const path = pathOf();
  const release = holdFile(path);
  const impatient = storeAt(path, {}, IMPATIENT).alone(async () => {}, NEVER);
  await expect(impatient).rejects.toThrow('it waits');
  const work = vi.fn(async () => {});
  const waiting = storeAt(path).alone(work, NEVER);
  expect(work).not.toHaveBeenCalled();
  release?.();
  await waiting;
  expect(work).toHaveBeenCalledOnce();
  expect(readdirSync(join(path, '..'))).toEqual([]);
});

it('the lock of a token store is taken over at once if its holder was killed', async () => {
  const path = pathOf();
  // A killed process leaves the file, but not the lock on it.
  writeFileSync(`${path}.lock`, '');
  const work = vi.fn(async () => {});
  await storeAt(path, {}, IMPATIENT).alone(work, NEVER);
  expect(work).toHaveBeenCalledOnce();
});

it('the lock of a token store is held by one of several stores at a time', async () => {
  const path = pathOf();
  let inside = 0;
  const work = async (): Promise<void> => {
    expect(++inside).toBe(1);
    await systemClock.sleep(5);
    inside--;
  };
  const stores = Array.from({ length: 4 }, () => storeAt(path));
  await Promise.all(stores.map((store) => store.alone(work, NEVER)));
  expect(readdirSync(join(path, '..'))).toEqual([]);
});

it('the lock of a token store is not waited for after an abort', async () => {
  const path = pathOf();
  const release = holdFile(path);
  onTestFinished(() => release?.());
  const gone = new AbortController();
  const waiting = storeAt(path).alone(async () => {}, gone.signal);
  gone.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'INTERRUPTED' });
});

it('the lock of a token store is released if the work fails', async () => {
  const store = storeAt(pathOf(), {}, IMPATIENT);
  await expect(store.alone(() => Promise.reject(new Error('failed')), NEVER)).rejects.toThrow('failed');
  await store.alone(async () => {}, NEVER);
});

it('the lock of a token store that cannot be made is an error that names its file', async () => {
  const path = pathOf();
  mkdirSync(`${path}.lock`);
  const error = storeAt(path, {}, IMPATIENT).alone(async () => {}, NEVER);
  await expect(error).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining(`${path}.lock`) as string,
  });
});
