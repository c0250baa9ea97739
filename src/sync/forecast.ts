import { sameContent } from '@catchword/catalog/content';
import { isWithdrawnBody } from '@catchword/catalog/field-values';
import { limitOf } from '@catchword/catalog/product-limit';
import type { Run } from '@catchword/catalog/run-types';
import type { Store } from '../store/store.ts';
import { compareMirrors } from './compare-mirrors.ts';
import { isGone } from './judge-item.ts';
import type { RunSettings } from './run-settings.ts';

type ForecastSettings = Pick<RunSettings, 'removalLimit' | 'ignoreFields' | 'withdrawnAs'>;

type Fate = 'created' | 'updated' | 'removed' | 'restored' | 'missing';

interface Found {
  readonly fate: Fate;
  readonly vbid: string;
  readonly title: string | null;
  /** Of a product that the run would remove. */
  readonly body?: string;
}

export const EXAMPLES = 10;

function appears(mirror: Store, vbid: string): Fate {
  return mirror.products.get(vbid)?.removedAt == null ? 'created' : 'restored';
}

function* fullRun(
  mirror: Store,
  scratch: Store,
  run: Run,
  { ignoreFields }: ForecastSettings,
  copiedAt: number,
): Generator<Found> {
  for (const found of compareMirrors(mirror, scratch, ignoreFields, copiedAt)) {
    const { vbid, title } = found;
    if (found.kind === 'only-there') yield { fate: appears(mirror, vbid), vbid, title };
    else if (found.kind === 'differs') yield { fate: 'updated', vbid, title };
    else yield { fate: run.proof === 'sealed' ? 'removed' : 'missing', vbid, title, body: found.body };
  }
}

/** Of a scratch mirror that began empty. */
function* allRead(mirror: Store, scratch: Store, settings: ForecastSettings): Generator<Found> {
  for (const { vbid, title, body } of scratch.products.all()) {
    const known = mirror.products.get(vbid);
    const gone = isGone({ withdrawn: isWithdrawnBody(body) }, settings);
    if (known === undefined || known.removedAt !== null) {
      if (!gone) yield { fate: appears(mirror, vbid), vbid, title };
    } else if (gone) yield { fate: 'removed', vbid, title, body };
    else if (!sameContent(known.body, body, settings.ignoreFields)) yield { fate: 'updated', vbid, title };
  }
}

/**
 * What a run would change in a mirror.
 * @param scratch a copy of it as of the change `copiedAt`, with what `run` read; or a mirror of only what `run` read (null)
 */
export function forecast(mirror: Store, scratch: Store, run: Run, settings: ForecastSettings, copiedAt: number | null) {
  const counts: Record<Fate, number> = { created: 0, updated: 0, removed: 0, restored: 0, missing: 0 };
  const examples: Omit<Found, 'body'>[] = [];
  /** Removals that the source has not announced. A run makes up to `limit` of them without approval. */
  let unexpected = 0;
  const found =
    copiedAt === null ? allRead(mirror, scratch, settings) : fullRun(mirror, scratch, run, settings, copiedAt);
  for (const { body, ...expected } of found) {
    if (counts[expected.fate]++ < EXAMPLES) examples.push(expected);
    if (expected.fate === 'removed' && body !== undefined && !isWithdrawnBody(body)) unexpected++;
  }
  const limit = limitOf(settings.removalLimit, mirror.products.living());
  const held = run.kind === 'full' && unexpected > 0 && (unexpected > limit || run.items === 0);
  return { counts, examples, unexpected, limit, held };
}

export type Forecast = ReturnType<typeof forecast>;
