// @module-tag slow
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readTextInTime } from '@catchword/base/text-file';
import { readSettings } from '@catchword/settings/config';
import { withDotEnv } from '@catchword/settings/environment';
import { serveHttp } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { runHere } from '../support/in-process.ts';

/** A process that opens a file which another one has leased for writing waits up to 45 s, as for a mount that hangs. */
const LEASE = `
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
sys.stdin.read()
`;

/** Lets every reading of a file hang until the test ends. */
async function hang(file: string): Promise<void> {
  const holder = spawn('python3', ['-c', LEASE, file], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void holder.stdin.end());
  await once(holder.stdout, 'data');
}

function secretFile(content: string): string {
  const file = join(temporaryDirectory(), 'secret');
  writeFileSync(file, content);
  return file;
}

it('a process goes on while the file of a secret does not answer, and names the variable after some seconds', async () => {
  const file = secretFile('a-key');
  const { values } = readSettings({
    CATCHWORD_API_KEY_FILE: file,
    CATCHWORD_SINK_SHOP: 'https://shop.example',
    CATCHWORD_SINK_SHOP_SECRET_FILE: file,
  });
  await hang(file);
  // More than the pool has threads: all of them together stop only one.
  const waiting = Array.from({ length: 8 }, () => values.secretAgain?.('apiKey'));
  const sink = values.sinks[0]?.again?.();
  const all = [...waiting, sink].map((each) =>
    expect(each).rejects.toThrow(/_FILE: cannot read .* \(no answer in 5 s\)/),
  );
  const order = [readFile(secretFile('other'), 'utf8'), Promise.all(all).then(() => 'given up')];
  expect(await Promise.race(order)).toBe('other');
  expect(await order[1]).toBe('given up');
});

it('a .env that does not answer is named as changed', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, '.env'), 'CATCHWORD_REMOVAL_LIMIT=3%');
  const { again } = withDotEnv({}, directory);
  await hang(join(directory, '.env'));
  await expect(again()).rejects.toThrow('no answer in 5 s');
});

it('a pipe in the place of a file is not waited for', async () => {
  const file = secretFile('');
  rmSync(file);
  execFileSync('mkfifo', [file]);
  await expect(readTextInTime('it', file)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: 'cannot read it (a pipe, which a process reads only when it starts)',
  });
});

it('a command reports what the service refused if the file of its key became a pipe meanwhile', async () => {
  const file = secretFile('a-key');
  const url = await serveHttp((_, response) => {
    rmSync(file);
    execFileSync('mkfifo', [file]);
    response.writeHead(401, { 'content-type': 'application/json' }).end('{"message":"unknown key"}');
  });
  const settings = { CATCHWORD_BASE_URL: url, CATCHWORD_API_KEY_FILE: file, CATCHWORD_RATE_LIMIT: 'off' };
  const { code, stderr } = await runHere(['catalog'], settings, temporaryDirectory());
  expect([code, stderr]).toEqual([2, expect.stringContaining('answered 401: unknown key')]);
});
