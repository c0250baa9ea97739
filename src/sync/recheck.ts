import type { FetchOutcome, FetchTask } from '../catalog/page.ts';
import { CatchwordError, fromErrorRecord } from '../errors.ts';
import type { PageQueue } from '../queue/queue.ts';
import type { Store } from '../store/store.ts';
import { requireHeld } from './decide.ts';

/** A number that no run's pass has. */
const RECHECK_PASS = 1_000_000;
const ATTEMPTS = 5;

/**
 * Looks up every product that a held run would remove.
 * @returns ids of those that the source still has, other than as withdrawn
 * @throws CatchwordError when a lookup fails, or when the lookup does not even find a product that is there: nothing is
 *   decided then
 */
export async function recheck(
  store: Store,
  queue: PageQueue,
  runId: number,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const { candidates } = requireHeld(store, runId);
  const held = new Set(candidates.map(({ id }) => id));
  const control = store.removals.control(held);
  if (candidates.length === 0 || control === undefined) return [];
  const tasks = [control, ...candidates].map(
    ({ id, vbid }): FetchTask => ({
      mirror: store.incarnation,
      runId,
      pass: RECHECK_PASS,
      window: { page: id, perPage: 1 },
      from: null,
      maxAttempts: ATTEMPTS,
      vbid,
    }),
  );
  const alive: number[] = [];
  let left = tasks.length;
  await new Promise<void>((resolve, reject) => {
    async function take(outcome: FetchOutcome): Promise<void> {
      if (outcome.kind === 'failed') {
        reject(fromErrorRecord(outcome.error));
        return;
      }
      const { task, page } = outcome.captured;
      const [product] = page.products;
      const there = product != null && !product.withdrawn;
      if (task.window.page === control?.id && product == null) {
        reject(
          new CatchwordError('SOURCE_REFUSED', `the lookup does not find ${task.vbid}, which the catalog lists`, {
            hint: 'Check CATCHWORD_LOOKUP_PATH; without it, approve does not ask the source again.',
          }),
        );
        return;
      }
      if (there && held.has(task.window.page)) alive.push(task.window.page);
      if (--left === 0) resolve();
    }
    signal.addEventListener(
      'abort',
      () => reject(new CatchwordError('INTERRUPTED', 'interrupted; nothing is decided')),
      {
        once: true,
      },
    );
    void queue.consume(take).then(() => queue.add(tasks), reject);
  });
  return alive;
}
