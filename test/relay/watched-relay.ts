import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { FAST_DIRECTORY } from '@catchword/testing/fast-directory';
import { openHarness, until } from '../../src/contract/harness.ts';
import { type Running, start } from '../support/cli.ts';
import { books } from './feeding.ts';

/** Runs the real relay in a process of its own, which feeds a healthy file besides the sinks under test. */
export function startWatchedRelay(sinks: Readonly<Record<string, string>>) {
  const directory = mkdtempSync(join(FAST_DIRECTORY, 'catchword-watched-'));
  const harness = openHarness();
  const env: Record<string, string> = {
    CATCHWORD_BASE_URL: 'http://service.example',
    CATCHWORD_DB: harness.store.path,
    CATCHWORD_SINK_HEALTHY: `jsonl:${join(directory, 'changes.jsonl')}`,
    LOG_LEVEL: 'info',
  };
  for (const [name, url] of Object.entries(sinks)) env[`CATCHWORD_SINK_${name.toUpperCase()}`] = url;
  harness.change(books(20, 0));
  const relay: Running = start(['relay'], env, directory);
  let hasEnded = false;
  void relay.ended.then(() => {
    hasEnded = true;
  });
  const { store } = harness;
  let version = 0;

  function requireAlive(): void {
    if (hasEnded) throw new Error(`the relay has ended; its files are in ${directory}`);
  }

  return {
    relay,
    env,
    directory,
    store,
    /** Resident memory of the relay, MB. */
    memoryMb: (): number =>
      (Number(readFileSync(`/proc/${relay.child.pid}/statm`, 'utf8').split(' ')[1]) * 4_096) / 1e6,
    /** Ends the pauses of the sinks that failed, so that they try again. */
    hurry: (): void => {
      for (const { id, name, state, retryAt } of store.sinks.list()) {
        if (name === 'healthy' || (state === 'running' && retryAt === null)) continue;
        store.request((writer) => writer.sinks.setState(id, 'running'));
      }
    },
    /** Changes some products. */
    change: (): void => harness.change(books(5, ++version)),
    /** Waits until the healthy sink has everything. */
    healthyGoesOn: async (): Promise<void> => {
      const last = store.changes.lastSeq();
      await until('the healthy sink has everything', () => {
        requireAlive();
        return (store.sinks.get('healthy')?.cursor ?? 0) >= last;
      });
    },
    /** Waits until the sink has failed. @returns its error */
    failureOf: async (name: string): Promise<string> => {
      await until(`${name} fails`, () => {
        requireAlive();
        return (store.sinks.get(name)?.error ?? null) !== null;
      });
      return store.sinks.get(name)?.error ?? '';
    },
    stop: async () => {
      const ended = hasEnded ? await relay.ended : await relay.stop();
      await harness.close();
      rmSync(directory, { recursive: true, force: true });
      return ended;
    },
  };
}
