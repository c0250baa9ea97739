import type { Clock } from '@catchword/base/clock';
import { isMirrorLost } from '@catchword/base/errors';
import { repeat, type Service } from '@catchword/base/lifecycle';
import type { Store } from '../store.ts';

/** How often a process that does not write checks that its mirror was not replaced. */
const LOOK_MS = 5_000;

/** A service that fails as soon as the open file is not the mirror at its path any more, so that the process ends. */
export function watchMirror(store: Store, clock: Clock): Service & { readonly failed: Promise<never> } {
  function turn(): void {
    try {
      store.check();
    } catch (error) {
      // Other errors, such as those of a failing disk, are reported where the mirror is used.
      if (isMirrorLost(error)) throw error;
    }
  }

  return repeat({ name: 'mirror watch', clock, everyMs: LOOK_MS, turn });
}
