import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openTokenStore, type TokenOwner } from '../../src/client/auth/token-store.ts';
import { type Clock, systemClock } from '../../src/clock.ts';
import { temporaryDirectory } from '../support/mirror.ts';

const OWNER: TokenOwner = { origin: 'https://a.example', apiKey: 'KEY', reference: 'me' };
const TOKEN = 'thetoken';
const NEVER = new AbortController().signal;
/** For `vi.waitFor`: a busy machine may take longer than its default of one second. */
const WAIT = { timeout: 30_000 };

/** A clock on which a wait for a lock is an error. */
const IMPATIENT: Clock = {
  ...systemClock,
  sleep: async () => {
    throw new Error('it waits');
  },
};

/** The id of a process that has ended. */
async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'exit');
  if (child.pid === undefined) throw new Error('not started');
  return child.pid;
}

function pathOf(): string {
  return join(temporaryDirectory(), 'token');
}

/** What is refused is left as it is. */
const REFUSED = expect.objectContaining({
  code: 'CONFIG_INVALID',
  message: expect.stringContaining('CATCHWORD_TOKEN_STORE') as string,
}) as Error;

function modeOf(path: string): number {
  return lstatSync(path).mode & 0o777;
}

describe('the file of a token', () => {
  it('is read by those alone whose token it is', async () => {
    const path = pathOf();
    await openTokenStore(path, OWNER, systemClock).write(TOKEN);
    expect(openTokenStore(path, { ...OWNER }, systemClock).read()).toBe(TOKEN);
    const others = [
      { origin: 'https://b.example' },
      { apiKey: 'OTHER' },
      { reference: 'you' },
      { reference: undefined },
    ];
    for (const other of others) {
      expect(openTokenStore(path, { ...OWNER, ...other }, systemClock).read()).toBeUndefined();
    }
    expect(readFileSync(path, 'utf8')).not.toMatch(/a\.example|KEY|me/);
  });

  it('that is empty is not read, and replaced by one for its user alone', async () => {
    const path = pathOf();
    writeFileSync(path, '', { mode: 0o644 });
    const store = openTokenStore(path, OWNER, systemClock);
    expect(store.read()).toBeUndefined();
    await store.write(TOKEN);
    expect(store.read()).toBe(TOKEN);
    expect(modeOf(path)).toBe(0o600);
  });

  it.each([' ', '\n', `${TOKEN}\n`, `${TOKEN}\nsha256:0\n`, 'A=1\nB=2\n', `${TOKEN}\nsha256:${'0'.repeat(64)}\n#`])(
    'that was somebody’s before, and no token’s, is refused and stays: %j',
    async (content) => {
      const path = pathOf();
      const store = openTokenStore(path, OWNER, systemClock);
      writeFileSync(path, content);
      const before = readFileSync(path);
      expect(() => openTokenStore(path, OWNER, systemClock)).toThrow(REFUSED);
      expect(() => store.read()).toThrow(REFUSED);
      await expect(store.write(TOKEN)).rejects.toThrow(REFUSED);
      expect(readFileSync(path)).toEqual(before);
    },
  );

  it.each(['', `${tmpdir()}/not-there/`])(
    'that is named by no file name is refused before it is needed: %j',
    (path) => {
      expect(() => openTokenStore(path, OWNER, systemClock)).toThrow(REFUSED);
    },
  );

  it.each(['/dev/null', tmpdir()])('that is no regular file is refused: %s', (path) => {
    expect(() => openTokenStore(path, OWNER, systemClock)).toThrow(REFUSED);
  });

  it('that others could read is made private before it is used', async () => {
    const path = pathOf();
    await openTokenStore(path, OWNER, systemClock).write(TOKEN);
    chmodSync(path, 0o644);
    expect(openTokenStore(path, OWNER, systemClock).read()).toBe(TOKEN);
    expect(modeOf(path)).toBe(0o600);
  });

  it.each(['that is there', 'that is not there yet'])('%s is reached through a link, which stays', async (which) => {
    const path = pathOf();
    const target = `${path}.target`;
    if (which === 'that is there') writeFileSync(target, '');
    symlinkSync('token.target', path);
    const store = openTokenStore(path, OWNER, systemClock);
    await store.write(TOKEN);
    expect(readlinkSync(path)).toBe('token.target');
    expect(lstatSync(target).isFile()).toBe(true);
    expect(openTokenStore(target, OWNER, systemClock).read()).toBe(TOKEN);
  });

  it('is written past what lies in its way: no link is followed, and no mode is taken over', async () => {
    const path = pathOf();
    const next = `${path}.${process.pid}.new`;
    const victim = `${path}.victim`;
    writeFileSync(victim, 'important');
    symlinkSync(victim, next);
    const store = openTokenStore(path, OWNER, systemClock);
    await store.write('first');
    expect(readFileSync(victim, 'utf8')).toBe('important');
    writeFileSync(next, 'left behind', { mode: 0o644 });
    await store.write(TOKEN);
    expect(store.read()).toBe(TOKEN);
    expect(modeOf(path)).toBe(0o600);
  });

  it('that cannot be written is an error that says so, whatever cannot be removed', async () => {
    const path = pathOf();
    const store = openTokenStore(path, OWNER, systemClock);
    // Neither a file to write nor one that a plain removal removes.
    mkdirSync(`${path}.${process.pid}.new`);
    await expect(store.write(TOKEN)).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
  });
});

describe('the lock of a token', () => {
  it('is taken over at once where its holder was killed', async () => {
    const path = pathOf();
    writeFileSync(`${path}.lock`, `${hostname()} ${await deadPid()} x`);
    const work = vi.fn(async () => {});
    await openTokenStore(path, OWNER, IMPATIENT).alone(work, NEVER);
    expect(work).toHaveBeenCalledOnce();
    expect(readdirSync(join(path, '..'))).toEqual([]);
  });

  it('is taken over where an earlier process had the same id', async () => {
    const path = pathOf();
    writeFileSync(`${path}.lock`, `${hostname()} ${process.pid} x`);
    const before = Date.now() / 1_000 - process.uptime() - 10;
    utimesSync(`${path}.lock`, before, before);
    await openTokenStore(path, OWNER, IMPATIENT).alone(async () => {}, NEVER);
    expect(existsSync(`${path}.lock`)).toBe(false);
  });

  it.each([
    ['seems to live', `${hostname()} ${process.pid} x`],
    ['is on another machine', 'elsewhere.example 1 x'],
    ['is not named yet', ''],
  ])('is waited for where its holder %s, and taken over in the end', async (_name, content) => {
    const path = pathOf();
    writeFileSync(`${path}.lock`, content);
    await expect(openTokenStore(path, OWNER, IMPATIENT).alone(async () => {}, NEVER)).rejects.toMatchObject({
      cause: { message: 'it waits' },
    });
    let now = Date.now();
    const sleep = async (ms: number): Promise<void> => {
      now += ms;
    };
    await openTokenStore(path, OWNER, { ...systemClock, now: () => now, sleep }).alone(async () => {}, NEVER);
    expect(now - Date.now()).toBeGreaterThan(150_000);
  });

  it('that a clock hours ahead has dated is taken over when it was not renewed for minutes', async () => {
    const path = pathOf();
    writeFileSync(`${path}.lock`, 'elsewhere.example 1 x');
    const ahead = Date.now() / 1_000 + 7_200;
    utimesSync(`${path}.lock`, ahead, ahead);
    let now = Date.now();
    const sleep = async (ms: number): Promise<void> => {
      now += ms;
    };
    await openTokenStore(path, OWNER, { ...systemClock, now: () => now, sleep }).alone(async () => {}, NEVER);
    expect(now - Date.now()).toBeLessThan(300_000);
  });

  it('is kept young by its holder, however long that works, and no longer', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const path = pathOf();
    await openTokenStore(path, OWNER, IMPATIENT).alone(async () => {
      for (let minute = 1; minute <= 5; minute++) {
        utimesSync(`${path}.lock`, 0, 0);
        vi.advanceTimersByTime(60_000);
        await vi.waitFor(() => expect(Date.now() - statSync(`${path}.lock`).mtimeMs).toBeLessThan(60_000), WAIT);
      }
      const other = openTokenStore(path, OWNER, IMPATIENT).alone(async () => {}, NEVER);
      await expect(other).rejects.toMatchObject({ cause: { message: 'it waits' } });
    }, NEVER);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('that is abandoned goes to one of those who wait for it at a time', async () => {
    const path = pathOf();
    writeFileSync(`${path}.lock`, `${hostname()} ${await deadPid()} x`);
    let inside = 0;
    const work = async (): Promise<void> => {
      expect(++inside).toBe(1);
      await systemClock.sleep(5);
      inside--;
    };
    const stores = Array.from({ length: 8 }, () => openTokenStore(path, OWNER, systemClock));
    await Promise.all(stores.map((store) => store.alone(work, NEVER)));
    expect(readdirSync(join(path, '..'))).toEqual([]);
  });

  it('that was taken from its holder is not kept young by it', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const [taken, kept] = [pathOf(), pathOf()];
    await openTokenStore(taken, OWNER, IMPATIENT).alone(async () => {
      writeFileSync(`${taken}.lock`, 'another holder');
      utimesSync(`${taken}.lock`, 0, 0);
      await openTokenStore(kept, OWNER, IMPATIENT).alone(async () => {
        // The second lock shows that the renewals have run.
        for (let minute = 1; minute <= 5; minute++) {
          utimesSync(`${kept}.lock`, 0, 0);
          vi.advanceTimersByTime(60_000);
          await vi.waitFor(() => expect(Date.now() - statSync(`${kept}.lock`).mtimeMs).toBeLessThan(60_000), WAIT);
        }
      }, NEVER);
    }, NEVER);
    expect(statSync(`${taken}.lock`).mtimeMs).toBe(0);
  });

  it('that was taken from its holder is not removed by it', async () => {
    const path = pathOf();
    await openTokenStore(path, OWNER, systemClock).alone(async () => {
      writeFileSync(`${path}.lock`, 'another holder');
    }, NEVER);
    expect(readFileSync(`${path}.lock`, 'utf8')).toBe('another holder');
  });

  it('that cannot be made is an error that names its file', async () => {
    const path = pathOf();
    mkdirSync(`${path}.lock`);
    const error = openTokenStore(path, OWNER, IMPATIENT).alone(async () => {}, NEVER);
    await expect(error).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('.lock') as string,
    });
  });
});
