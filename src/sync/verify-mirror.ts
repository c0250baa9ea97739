import { isWithdrawnBody } from '../catalog/field-values.ts';
import type { Run } from '../catalog/run-types.ts';
import type { Store } from '../store/store.ts';
import { compareMirrors, type Disagreement } from './compare-mirrors.ts';
import { isGone } from './judge-item.ts';
import type { RunSettings } from './run-settings.ts';

/**
 * `drift`: the next run changes it anyway. `difference`: it should not be. `unproven`: only the mirror has it, and the
 * reading cannot prove that the source does not.
 */
export interface Verdict {
  readonly found: Disagreement;
  readonly as: 'drift' | 'difference' | 'unproven';
}

/** Keys of the products that a run read. */
function keysOf({ runs, removals }: Store, run: Run): Set<string> {
  const ids = [...runs.eachIds(run.id)].flat();
  return new Set(ids.flatMap((id) => removals.living(id)?.vbid ?? []));
}

/**
 * Compares a mirror with the source.
 * @param scratch a copy of it as of the change `copiedAt`, with what `full` and then `delta` read
 * @param delta what changed since the mirror was last complete
 */
export function* verifyMirror(
  mirror: Store,
  scratch: Store,
  full: Run,
  delta: Run,
  { ignoreFields, withdrawnAs }: Pick<RunSettings, 'ignoreFields' | 'withdrawnAs'>,
  copiedAt: number,
): Generator<Verdict> {
  const changed = keysOf(scratch, delta);
  for (const found of compareMirrors(mirror, scratch, ignoreFields, copiedAt)) {
    const isWithdrawn = found.kind !== 'differs' && isWithdrawnBody(found.body);
    if (found.kind === 'only-there' && isGone({ withdrawn: isWithdrawn }, { withdrawnAs })) continue;
    if (changed.has(found.vbid) || (found.kind === 'only-here' && isWithdrawn)) yield { found, as: 'drift' };
    else if (found.kind === 'only-here' && full.proof !== 'sealed') yield { found, as: 'unproven' };
    else yield { found, as: 'difference' };
  }
}
