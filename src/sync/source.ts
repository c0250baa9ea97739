import type { Selection, SourceIdentity } from '../catalog/source.ts';
import { CatchwordError } from '../errors.ts';
import type { Notice } from '../log.ts';
import type { Store } from '../store/store.ts';

/** Whether nothing of any source is in the mirror: then it may become the mirror of any. */
function isUnread(store: Store): boolean {
  const unfinished = store.runs.unfinished();
  return store.watermark() === null && store.products.lastId() === 0 && (unfinished?.pages ?? 0) === 0;
}

/**
 * A mirror is continued with its own source only: with another one, deltas would be complete that say nothing of what the
 * mirror holds. To be called before the source is asked anything for this mirror.
 * @throws CatchwordError MIRROR_OTHER_SOURCE
 */
export function requireSameSource(store: Store, { address }: SourceIdentity): void {
  const noted = store.source.noted();
  if (noted === null || noted.address === address || isUnread(store)) return;
  throw new CatchwordError(
    'MIRROR_OTHER_SOURCE',
    `${store.path} is the mirror of ${noted.address}, and CATCHWORD_BASE_URL is ${address}`,
    {
      hint: 'Set CATCHWORD_DB to another file. If the same service has a new address: npx catchword adopt.',
    },
  );
}

const VARIABLES: Readonly<Record<keyof Selection, string>> = {
  includeDetails: 'CATCHWORD_INCLUDE_DETAILS',
  currency: 'CATCHWORD_CURRENCY',
};

function shown(values: readonly string[]): string {
  return values.length === 0 ? '(none)' : values.join(',');
}

/** `CATCHWORD_CURRENCY changed from (none) to EUR`, for each setting that did; empty where none did. */
export function selectionChanges(before: string, after: string): string {
  const [old, new_] = [before, after].map((text) => JSON.parse(text) as Selection);
  if (old === undefined || new_ === undefined) return '';
  const names = Object.keys(VARIABLES) as (keyof Selection)[];
  return names
    .filter((name) => shown(old[name]) !== shown(new_[name]))
    .map((name) => `${VARIABLES[name]} changed from ${shown(old[name])} to ${shown(new_[name])}`)
    .join('; ');
}

/**
 * Why every product has to be read again: what selects the catalog has changed, or such a reading was begun and has not
 * ended. Null where a delta does.
 */
export function rereadNotice(store: Store, { selection }: SourceIdentity): Notice | null {
  const noted = store.source.noted();
  if (noted === null || isUnread(store) || (!noted.unfinished && noted.selection === selection)) return null;
  const changes = selectionChanges(noted.selection, selection);
  const why =
    changes === ''
      ? 'the source or the settings of the mirror were changed, and no full load has ended since'
      : changes;
  return {
    message: 'every product is read again and recorded as updated where it differs',
    fields: { reason: why },
  };
}

/**
 * Notes, as a run begins, what it reads. What was noted as the selection stays until a full run has ended with the new one.
 * @returns whether the run must be a full one
 */
export function noteBegin(store: Store, { address, selection }: SourceIdentity): boolean {
  const noted = isUnread(store) ? null : store.source.noted();
  const rereads = noted !== null && (noted.unfinished || noted.selection !== selection);
  store.source.note({ address, selection: rereads ? noted.selection : selection, unfinished: rereads });
  return rereads;
}

/** Notes that a full run has read everything. */
export function noteRead(store: Store, runId: number): void {
  const noted = store.source.noted();
  const selection = store.runs.selectionOf(runId);
  if (noted !== null && selection !== null) store.source.note({ address: noted.address, selection, unfinished: false });
}
