import type { Run, RunRequest } from '../catalog/run.ts';
import { tickTime } from '../catalog/tick.ts';
import { deltaFrom } from '../catalog/watermark.ts';
import { CatchwordError } from '../errors.ts';
import type { Leased } from '../store/lease.ts';
import type { KeeperWriter } from '../store/writers.ts';
import type { RunSettings } from './run-settings.ts';
import { noteRunStart, requireSameSource } from './source.ts';

/**
 * Plans a run: one row, one pass. Instead of a delta it plans a full run if the mirror has no watermark yet, or if the
 * settings select other products than those read so far.
 * @param nowMs local clock
 * @returns the run, or null if the run of its tick was already started
 * @throws CatchwordError LEASE_LOST, MIRROR_OTHER_SOURCE
 */
export function startRun(
  leased: Leased<KeeperWriter>,
  request: RunRequest,
  settings: Pick<RunSettings, 'perPage' | 'seam' | 'overlapMs' | 'source'>,
  nowMs: number,
): Run | null {
  return leased.write((writer) => {
    const moment = request.tick === undefined ? null : tickTime(request.tick);
    if (moment !== null) writer.schedule.serve(request.kind, moment);
    if (request.tick !== undefined && writer.runs.hasTick(request.tick)) return null;
    requireSameSource(writer, settings.source);
    const rereads = noteRunStart(writer, settings.source);
    const readUpTo = writer.readUpTo();
    const since = request.from ?? (readUpTo === null ? null : deltaFrom(readUpTo, settings.overlapMs));
    const from = request.kind === 'delta' && !rereads ? since : null;
    const kind = from === null ? 'full' : 'delta';
    if (writer.products.lastId() === 0) writer.products.dropLookups();
    const { selection } = settings.source;
    const id = writer.runs.create({ kind, from, startedAt: nowMs, tick: request.tick ?? null, selection });
    writer.runs.addPass({
      runId: id,
      pass: 0,
      kind: from === null ? 'list' : 'delta',
      root: 0,
      from,
      sourceTime: null,
      numItems: null,
      perPage: settings.perPage,
      seam: settings.seam,
      sizeIgnored: false,
      reversed: false,
    });
    const run = writer.runs.get(id);
    if (run === undefined) throw new CatchwordError('NOT_FOUND', `run ${id} vanished while it was being planned`);
    return run;
  });
}
