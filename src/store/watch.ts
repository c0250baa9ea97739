import type { Clock } from '../clock.ts';
import { isMirrorLost } from '../errors.ts';
import { failureOf, type Service } from '../lifecycle.ts';
import type { Store } from './store.ts';

/** How often a process that does not write looks whether its mirror is still there. */
const LOOK_MS = 5_000;

/** A service that fails as soon as the open file is no longer the mirror at its path: what serves it cannot go on. */
export function watchMirror(store: Store, clock: Clock): Service & { readonly failed: Promise<never> } {
  const stopping = new AbortController();

  function look(): void {
    try {
      store.check();
    } catch (error) {
      // Anything else, such as a disk that does not answer now, is met where the mirror is used.
      if (isMirrorLost(error)) throw error;
    }
  }

  async function watch(): Promise<void> {
    for (;;) {
      await clock.sleep(LOOK_MS, stopping.signal).catch(() => {});
      if (stopping.signal.aborted) return;
      look();
    }
  }

  const watching = watch();
  return {
    name: 'mirror watch',
    failed: failureOf(watching),
    stop: async () => {
      stopping.abort();
      await watching.catch(() => {});
    },
  };
}
