import { Command } from 'commander';
import type { Run, RunRequest } from '../catalog/run.ts';
import type { Config, SourceConfig } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import { runJson } from '../report/run.ts';
import { mirrorExists } from '../store/place.ts';
import { openStore } from '../store/store.ts';
import type { Keeper } from '../sync/keeper.ts';
import { dryRun } from './dry-run.ts';
import { heldJson, heldLines } from './review.ts';
import { commandLog } from './shared/command-log.ts';
import type { CommandContext } from './shared/context.ts';
import { colours, count, duration, isoMoment, moment, plural, printJson, printLine, SKEW_MS } from './shared/format.ts';
import { type KeeperOptions, startKeeper } from './shared/pipeline.ts';
import { showProgress } from './shared/progress.ts';
import { checkPause, toPerson } from './shared/rate-limit.ts';
import { loadSettings } from './shared/settings.ts';
import { settlingText } from './shared/settling.ts';

/** What a run did, for a person. */
export function runSummary(context: CommandContext, run: Run): string {
  const c = colours(context, context.stdout);
  const tookMs = (run.finishedAt ?? context.clock.now()) - run.startedAt;
  const state = run.state === 'complete' ? c.green(run.state) : c.yellow(run.state);
  const changes = [
    `${count(run.created)} created`,
    `${count(run.updated)} updated`,
    `${count(run.removed)} removed`,
    `${count(run.restored)} restored`,
  ];
  const lines = [
    `run ${run.id}: ${run.kind} load ${state} in ${duration(tookMs)}`,
    `  read     ${plural(run.items, 'product')}, ${plural(run.pages, 'page')}, ${plural(run.requests, 'request')}`,
    `  changes  ${changes.join(', ')}`,
  ];
  const settling = settlingText(run);
  if (settling !== null) lines.push(`  ${settling}`);
  if (run.rejected > 0) lines.push(`  rejected ${plural(run.rejected, 'item')}: npx catchword run ${run.id}`);
  if (run.missing > 0 && settling === null)
    lines.push(`  missing  ${plural(run.missing, 'product')} not seen and not removed`);
  if (run.proof !== null)
    lines.push(`  proof    ${run.proof}${run.reasons.map((reason) => `\n           ${c.dim(reason)}`).join('')}`);
  if (run.error !== null) lines.push(`  error    ${run.error}`);
  return lines.join('\n');
}

export interface RunOptions {
  readonly json?: boolean;
  readonly now?: boolean;
}

/** Makes one run, prints what came of it, and sets the exit code. */
export async function runOnce(
  context: CommandContext,
  config: SourceConfig,
  { json, now, adopting }: RunOptions & Pick<KeeperOptions, 'adopting'>,
  work: (keeper: Keeper) => Promise<Run | null>,
): Promise<void> {
  // Somebody waits for one answer: what came of it, or one line that says why not.
  const log = commandLog(context, context.environment.LOG_LEVEL ? config.logLevel : 'error');
  const display = showProgress(context);
  const service = await startKeeper({
    ...{ config, clock: context.clock, log, fetching: true, now: now === true, adopting: adopting === true },
    onProgress: display.update,
    tell: toPerson(context),
  });
  try {
    if (adopting !== true) checkPause(service.store, context.clock.now());
    const run = await work(service.keeper);
    display.stop();
    if (run === null) return;
    service.store.walCheckpoint();
    if (run.state === 'held') context.setExitCode(5);
    if (json) {
      const held = run.state === 'held' && { held_removals: heldJson(service.store, run.id) };
      printJson(context, { ...runJson(run), ...held });
      return;
    }
    printLine(context, runSummary(context, run));
    if (run.state === 'held') printLine(context, `\n${heldLines(service.store, run.id)}`);
  } finally {
    display.stop();
    await service.stop();
  }
}

interface SyncOptions extends RunOptions {
  readonly full?: boolean;
  readonly from?: number;
  readonly dryRun?: boolean;
}

/**
 * Of a mirror that was never filled a delta would create withdrawn products, too, which the next full load removes; and
 * nothing has changed after now.
 * @throws CatchwordError USAGE
 */
function checkFrom({ db, dbMode: mode }: Config, from: number, nowMs: number): void {
  const store = mirrorExists(db) ? openStore(db, { mustExist: true, forReading: true, mode }) : null;
  try {
    const watermark = store?.watermark() ?? null;
    if (watermark === null) {
      throw new CatchwordError('USAGE', '--from: the mirror was never filled, so there is nothing to add changes to', {
        hint: 'Run this first: npx catchword sync.',
      });
    }
    // The source's clock may be ahead of this one.
    if (from > Math.max(nowMs, watermark) + SKEW_MS) {
      throw new CatchwordError('USAGE', `--from: ${moment(from)} UTC is in the future`, {
        hint: `It is ${moment(nowMs)} UTC by the clock of this machine.`,
      });
    }
  } finally {
    store?.close();
  }
}

export function syncCommand(context: CommandContext): Command {
  return new Command('sync')
    .description('read what changed since the last run, or everything the first time')
    .option('--full', 'read the whole catalog')
    .option(
      '--from <time>',
      'read what changed since this time (ISO 8601, UTC unless it names a zone)',
      isoMoment('--from'),
    )
    .option('--dry-run', 'print what the run would create, change and remove; change no product')
    .option('--now', 'ask the source now, although it asked for a pause, and end that pause for a running daemon too')
    .option('--json', 'print the run as one JSON document')
    .action(async (options: SyncOptions) => {
      if (options.full && options.from !== undefined) {
        throw new CatchwordError('USAGE', '--full and --from exclude each other', {
          hint: '--full reads everything, --from only what changed since.',
        });
      }
      const config = loadSettings(context, 'source');
      if (options.from !== undefined) checkFrom(config, options.from, context.clock.now());
      const request: RunRequest = {
        kind: options.full ? 'full' : 'delta',
        ...(options.from !== undefined && { from: options.from }),
      };
      if (options.dryRun) await dryRun(context, config, request, options);
      else await runOnce(context, config, options, (keeper) => keeper.run(request, context.signal));
    });
}
