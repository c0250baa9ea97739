import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { addressOf, startService } from '../support/cli.ts';
import { filled } from '../support/place.ts';

const isLinux = process.platform === 'linux';

/** How many sockets a process listens on: sockets in state 0A, by their inodes. */
function listening(pid: number): number {
  const inodes = ['tcp', 'tcp6'].flatMap((name) =>
    readFileSync(`/proc/net/${name}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .flatMap(([, , , state, , , , , , inode]) => (state === '0A' ? `socket:[${inode}]` : [])),
  );
  const directory = `/proc/${pid}/fd`;
  return readdirSync(directory).filter((fd) => inodes.includes(readlinkSync(`${directory}/${fd}`))).length;
}

/** The processes that the threads of a process have started. */
function childrenOf(pid: number): number[] {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const texts = tasks.map((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8'));
  return texts.flatMap((text) => text.trim().split(' ').filter(Boolean).map(Number));
}

/** Sends SIGUSR1, which lets Node open its debugger, and waits for longer than that takes. */
async function askForDebugger(pid: number): Promise<void> {
  process.kill(pid, 'SIGUSR1');
  await delay(1_000);
}

it.skipIf(!isLinux)(
  'a signal opens no debugger of a daemon, nor of a process that it starts to search',
  { tags: ['slow'] },
  async () => {
    const source = await filled({ items: 50 });
    const daemon = startService(
      ['daemon'],
      { ...source.settings, CATCHWORD_HTTP_PORT: '0', LOG_LEVEL: 'info' },
      source.directory,
    );
    const address = await addressOf(daemon);
    const pid = daemon.child.pid ?? 0;
    await fetch(`${address}/api/products?q=a`);
    const [search] = childrenOf(pid);
    if (search === undefined) throw new Error('no process searches');
    for (const one of [pid, search]) await askForDebugger(one);
    expect([listening(pid), listening(search)]).toEqual([1, 0]);
    expect((await daemon.stop()).stderr).not.toContain('Debugger');
  },
);

it.skipIf(!isLinux)(
  'a debugger that a signal opened while the program starts is closed, and one that was asked for stays',
  { tags: ['slow'] },
  async () => {
    const directory = temporaryDirectory();
    async function listeningAfter(options: string, signals: number): Promise<number> {
      const sandbox = startService(['sandbox', '--port', '0'], { NODE_OPTIONS: options }, directory);
      const pid = sandbox.child.pid ?? 0;
      // From the time on when Node answers the signal: before, it would end the process.
      await expect.poll(() => caughtByNode(pid), { interval: 1 }).toBe(true);
      for (let sent = 0; sent < signals; sent++) process.kill(pid, 'SIGUSR1');
      await sandbox.shows('CATCHWORD_BASE_URL');
      await delay(1_000);
      return listening(pid);
    }
    expect(await listeningAfter('--inspect-port=0', 1)).toBe(1);
    expect(await listeningAfter('--inspect=127.0.0.1:0', 0)).toBe(2);
  },
);

/** Whether a process catches SIGUSR1, which is signal 10. */
function caughtByNode(pid: number): boolean {
  const [, caught = '0'] = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return ((BigInt(`0x${caught}`) >> 9n) & 1n) === 1n;
}
