import type { Run, RunRequest } from '../catalog/run-types.ts';
import { tickTime } from '../catalog/tick.ts';
import { deltaFrom } from '../proof/watermark.ts';
import type { KeeperWriter, LeasedKeeper } from '../store/schema/writers.ts';
import { requireRun } from './finish-run.ts';
import { firstSize } from './page-size.ts';
import type { RunSettings } from './run-settings.ts';
import { noteRunStart, requireSameSource } from './source-binding.ts';

/**
 * Plans a run: one row, one pass. Instead of a delta it plans a full run if the mirror has no watermark yet, or if the
 * settings select other products than those read so far.
 * @param nowMs local clock
 * @param onPlanned called with the run in the same transaction; if it throws, nothing is planned
 * @returns the run, or null if the run of its tick was already started
 * @throws CatchwordError LEASE_LOST, MIRROR_OTHER_SOURCE
 */
export function startRun(
  leased: LeasedKeeper,
  request: RunRequest,
  settings: Pick<RunSettings, 'perPage' | 'seam' | 'overlapMs' | 'source'>,
  nowMs: number,
  onPlanned: (writer: KeeperWriter, run: Run) => void = () => {},
): Run | null {
  return leased.write((writer) => {
    const { tick = null } = request;
    const { source, overlapMs, seam } = settings;
    const moment = tick === null ? null : tickTime(tick);
    if (moment !== null) writer.schedule.serve(request.kind, moment);
    if (tick !== null && writer.runs.hasTick(tick)) return null;
    requireSameSource(writer, source);
    const rereads = noteRunStart(writer, source);
    const readUpTo = writer.readUpTo();
    const since = request.from ?? (readUpTo === null ? null : deltaFrom(readUpTo, overlapMs));
    const from = request.kind === 'delta' && !rereads ? since : null;
    const isFull = from === null;
    if (writer.products.lastId() === 0) writer.products.dropLookups();
    const run = { kind: isFull ? 'full' : 'delta', from, startedAt: nowMs, tick, selection: source.selection } as const;
    const runId = writer.runs.create(run);
    const unread = { sourceTime: null, numItems: null, sizeIgnored: false, reversed: false };
    const kind = isFull ? 'list' : 'delta';
    const perPage = firstSize(settings.perPage, writer.source.learnedPage(nowMs));
    writer.runs.addPass({ runId, pass: 0, kind, root: 0, from, perPage, seam, ...unread });
    const planned = requireRun(writer, runId);
    onPlanned(writer, planned);
    return planned;
  });
}
