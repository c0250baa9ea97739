import { CatchwordError } from '@catchword/base/errors';
import type { Notice } from '@catchword/base/log';
import type { Pointer } from '@catchword/catalog/content';
import type { Selection, SourceIdentity } from '@catchword/catalog/source-identity';
import type { NotedSource } from '../store/rows/source-state.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { KeeperWriter } from '../store/schema/writers.ts';
import type { RunSettings } from './run-settings.ts';

/** Whether the mirror holds nothing from any source yet: then it may become the mirror of any source. */
function isUnread(store: Reader): boolean {
  const unfinished = store.runs.unfinished();
  return store.watermark() === null && store.products.lastId() === 0 && (unfinished?.pages ?? 0) === 0;
}

/** Rejects another source than the mirror's own, before the first request for it. @throws MIRROR_OTHER_SOURCE */
export function requireSameSource(store: Reader, { address }: SourceIdentity): void {
  const noted = store.source.noted();
  if (noted === null || noted.address === address || isUnread(store)) return;
  const what = `${store.path} is the mirror of ${noted.address}, and CATCHWORD_BASE_URL is ${address}`;
  const hint = 'Set CATCHWORD_DB to another file. If the same service has a new address: npx catchword adopt.';
  throw new CatchwordError('MIRROR_OTHER_SOURCE', what, { hint });
}

const VARIABLES = [
  ['includeDetails', 'CATCHWORD_INCLUDE_DETAILS'],
  ['currency', 'CATCHWORD_CURRENCY'],
] as const;

const pointersText = (fields: readonly Pointer[]): string => fields.map((one) => `/${one.join('/')}`).join();

const changeText = (variable: string, before: string | undefined, after: string): string =>
  `${variable} changed from ${before || '(none)'} to ${after || '(none)'}`;

/** Such as `CATCHWORD_CURRENCY changed from (none) to EUR`, for each setting that changed; empty if none did. */
export function selectionChanges(before: string, after: string): string {
  const changes = VARIABLES.flatMap(([name, variable]) => {
    const [old = '', now = ''] = [before, after].map((text) => (JSON.parse(text) as Selection)[name].join());
    return old === now ? [] : changeText(variable, old, now);
  });
  return changes.join('; ');
}

/** What the mirror has noted, if every product has to be read again; otherwise null. */
function toReread(store: Reader, selection: string): NotedSource | null {
  const noted = isUnread(store) ? null : store.source.noted();
  return noted !== null && (noted.unfinished || noted.selection !== selection) ? noted : null;
}

/**
 * Why every product has to be read again: the settings that select the catalog changed, or such a full run has not
 * completed yet. Null if a delta is enough.
 */
export function rereadNotice(store: Reader, { selection }: SourceIdentity): Notice | null {
  const noted = toReread(store, selection);
  if (noted === null) return null;
  const reason =
    selectionChanges(noted.selection, selection) ||
    'the source or the settings of the mirror changed, or a backup was restored, and a full load has not completed since';
  return { message: 'reading every product again; those that differ are recorded as updated', fields: { reason } };
}

/** Notes what a run reads; a noted selection stays until a full run has completed. @returns whether it must be a full one */
export function noteRunStart(writer: KeeperWriter, { address, selection }: SourceIdentity): boolean {
  const noted = toReread(writer, selection);
  writer.source.note({ address, selection: noted?.selection ?? selection, unfinished: noted !== null });
  return noted !== null;
}

/** Notes the settings of a full run that has read everything. @returns how they differ from the ones before; or empty */
export function noteFullRead(
  writer: KeeperWriter,
  runId: number,
  { ignoreFields, volatileFields }: Pick<RunSettings, 'ignoreFields' | 'volatileFields'>,
): string {
  const noted = writer.source.noted();
  const selection = writer.runs.selectionOf(runId);
  if (noted === null || selection === null) return '';
  const ignored = {
    // A run ignores volatile fields, too.
    CATCHWORD_IGNORE_FIELDS: pointersText(ignoreFields.filter((field) => !volatileFields.includes(field))),
    CATCHWORD_VOLATILE_FIELDS: pointersText(volatileFields),
  };
  writer.source.note({ address: noted.address, selection, unfinished: false, ignored });
  const changes = Object.entries(ignored).map(([variable, now]) => {
    const before = noted.ignored?.[variable] ?? now;
    return before === now ? '' : changeText(variable, before, now);
  });
  return [selectionChanges(noted.selection, selection), ...changes].filter((text) => text !== '').join('; ');
}
