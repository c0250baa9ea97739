import { PassThrough } from 'node:stream';
import { CatchwordError, EXIT, usageError } from '@catchword/base/errors';
import { printable } from '@catchword/base/printable';
import type { Run, RunRequest } from '@catchword/catalog/run-types';
import { sourceIdentity } from '@catchword/catalog/source-identity';
import type { SourceConfig } from '@catchword/settings/config';
import { Command } from 'commander';
import { checkPause } from '../../operate/decisions/check-pause.ts';
import { deltaFrom } from '../../proof/watermark.ts';
import { problemText } from '../../report/problem-text.ts';
import { reasonText } from '../../report/reason-text.ts';
import { heldRemovalsJson } from '../../report/run-report.ts';
import { heldText, proofLine } from '../../report/run-text.ts';
import { count, plural, SKEW_MS, time } from '../../report/text.ts';
import { runSummary } from '../../shown/run-summary.ts';
import { runJson } from '../../shown/shown-run.ts';
import { stateOf } from '../../state/mirror-state.ts';
import { problemsOf } from '../../state/problems.ts';
import { LEASES } from '../../store/schema/lease.ts';
import type { Store } from '../../store/store.ts';
import { EXAMPLES, type Forecast, forecast } from '../../sync/forecast.ts';
import type { Keeper } from '../../sync/keeper.ts';
import { requireSameSource, rereadNotice } from '../../sync/source-binding.ts';
import { withMirror, withMirrorIfAny } from '../roles/open-mirror.ts';
import { type KeeperOptions, startKeeper } from '../roles/pipeline.ts';
import { withScratchMirror } from '../roles/scratch-mirror.ts';
import { loadSettings } from './shared/checked-settings.ts';
import type { CommandContext } from './shared/command-context.ts';
import { colours, isoMoment, type JsonOption, print } from './shared/output-format.ts';
import { observePause, toPerson } from './shared/person-notices.ts';
import { withProgress } from './shared/show-progress.ts';

type RunOptions = JsonOption & Pick<KeeperOptions, 'now' | 'adopting'> & { readonly quiet?: true };

/** What a person should look at after a run: problems, and events that a sink refused. */
function worries(store: Store, config: SourceConfig, nowMs: number): string[] {
  return store.read(() => {
    const state = stateOf(store, nowMs, config);
    const problems = problemsOf(state).filter(({ begins }) => begins);
    const texts = problems.map((problem) => problemText(problem, state, store));
    const parked = state.sinks.flatMap(({ row: { id, name } }) => {
      const events = store.sinks.parkedCount(id);
      return events === 0 ? [] : `Sink ${name} refused changes: npx catchword sink parked ${name}`;
    });
    return [...texts.map(({ title, advice }) => `${title}. ${advice}`), ...parked];
  });
}

/** Makes one run, prints its result, and sets the exit code. */
async function runOnce(
  context: CommandContext,
  config: SourceConfig,
  options: RunOptions,
  work: (keeper: Keeper) => Promise<Run | null>,
): Promise<void> {
  // cron mails what is printed, also of a pause that is only long, and the log of a daemon that shares the settings.
  const silent = { stderr: new PassThrough().resume(), environment: { ...context.environment, LOG_LEVEL: undefined } };
  await withProgress({ ...context, ...(options.quiet === true && silent) }, config, async (runContext, display) => {
    const { now, adopting } = options;
    const kept = await startKeeper({ ...runContext, fetching: true, now, adopting });
    const { store, keeper } = kept;
    try {
      if (adopting !== true) checkPause(store, context.clock.now());
      const run = await work(keeper);
      display.stop();
      if (run === null) return;
      store.walCheckpoint();
      const found = options.quiet === true ? worries(store, config, context.clock.now()) : [];
      const json: Record<string, unknown> = runJson(run);
      const text = [runSummary(colours(context), run, context.clock.now())];
      if (run.state === 'held') {
        context.setExitCode(EXIT.held);
        json.held_removals = heldRemovalsJson(store, run.id);
        text.push('', heldText(store, run));
      }
      if (options.quiet === true) {
        if (found.length === 0 && run.state === 'complete') return;
        // A run that holds removals has a code of its own.
        if (run.state === 'complete') context.setExitCode(1);
        json.worries = found;
        text.push(...found);
      }
      print(context, options, { json, text });
    } finally {
      display.stop();
      await kept.stop();
    }
  });
}

/** @throws CatchwordError USAGE if the mirror was never filled, or `from` is in the future */
function checkFrom(mirror: Store | null, from: number, nowMs: number): void {
  const watermark = mirror?.watermark() ?? null;
  // A delta into an empty mirror would create withdrawn products, which the next full load removes.
  if (watermark === null) {
    const message = '--from: the mirror was never filled, so there is nothing to add changes to';
    throw usageError(message, 'Run this first: npx catchword sync.');
  }
  // The source's clock may be ahead of this one.
  if (from <= Math.max(nowMs, watermark) + SKEW_MS) return;
  throw usageError(`--from: ${time(from)} is in the future`, `It is ${time(nowMs)} by the clock of this machine.`);
}

function forecastText(run: Run, { counts, examples, unexpected, limit, held }: Forecast): string[] {
  const why =
    run.items === 0
      ? ', held for approval: the source lists no product at all'
      : `, held for approval: ${count(unexpected)} were not announced, more than the limit of ${count(limit)}`;
  const indent = ' '.repeat(11);
  const lines = Object.entries(counts).flatMap(([fate, number]) => {
    if (fate === 'missing' && number === 0) return [];
    const shown = examples.filter((one) => one.fate === fate);
    return [
      `  ${fate.padEnd(9)}${count(number)}${fate === 'removed' && held ? why : ''}`,
      ...shown.map(({ vbid, title }) => `${indent}${vbid}  ${printable(title ?? '')}`),
      ...(number > EXAMPLES ? [`${indent}… and ${count(number - EXAMPLES)} more`] : []),
    ];
  });
  const head = `a ${run.kind} load of ${plural(run.items, 'product')} would make these changes; no product was changed`;
  return [head, ...lines, ...proofLine(run, ': ')];
}

function forecastJson({ kind, proof, reasons, items, requests }: Run, expected: Forecast): Record<string, unknown> {
  const { counts, held, unexpected, limit, examples } = expected;
  const run = { dry_run: true, kind, proof, reasons: reasons.map(reasonText), items, requests };
  return { ...run, ...counts, held, unexpected, removal_limit: limit, examples };
}

/** Reads what a run would read into a scratch mirror, and prints what it would change. */
async function dryRun(
  context: CommandContext,
  config: SourceConfig,
  request: RunRequest,
  options: RunOptions,
  mirror: Store | null,
): Promise<void> {
  const source = sourceIdentity(config);
  if (mirror !== null) {
    requireSameSource(mirror, source);
    observePause(context, mirror, options.now);
  }
  const reread = mirror === null ? null : rereadNotice(mirror, source);
  if (reread !== null) toPerson(context)(reread);
  const readUpTo = mirror?.readUpTo() ?? null;
  const from = request.from ?? (readUpTo === null ? undefined : deltaFrom(readUpTo, config.deltaOverlapMs));
  const isFull = from === undefined || reread !== null;
  // With `removed`, the empty scratch mirror would not store the withdrawn products that a delta contains.
  const own: SourceConfig = isFull ? config : { ...config, withdrawnAs: 'updated' };
  const { signal } = context;
  await withProgress(context, own, (runContext) =>
    withScratchMirror({ ...runContext, now: options.now, mirror, copies: isFull, signal }, async (scratch) => {
      const run = await scratch.run(isFull ? { kind: 'full' } : { kind: 'delta', from });
      const expected = forecast(scratch.mirror, scratch.store, run, config, scratch.copiedAt);
      // As the run itself would.
      if (expected.held) context.setExitCode(EXIT.held);
      print(context, options, { json: forecastJson(run, expected), text: forecastText(run, expected) });
    }),
  );
}

function syncCommand(context: CommandContext): Command {
  return new Command('sync')
    .option('--full', 'read the whole catalog')
    .option('--from <time>', 'read what changed since this time (ISO 8601, UTC by default)', isoMoment('--from'))
    .option('--dry-run', 'print what the run would create, change and remove; change no product')
    .option('--now', 'end a pause that the source asked for, also for a running daemon')
    .option(
      '--quiet',
      'for cron: print nothing and exit with 0, unless a person should look: then print why, and exit with 1 (5: held)',
    )
    .option('--json', 'print the run as one JSON document')
    .action(async (options: RunOptions & { readonly full?: true; readonly from?: number; readonly dryRun?: true }) => {
      const { full, from, dryRun: isDry } = options;
      if (full && from !== undefined) {
        const hint = 'Use --full to read everything, or --from to read only what changed since.';
        throw usageError('--full and --from exclude each other', hint);
      }
      if (full && isDry) throw usageError('sync --full --dry-run is now a command', 'Use: npx catchword verify.');
      const config = loadSettings(context, 'source');
      const request: RunRequest = { kind: full ? 'full' : 'delta', ...(from !== undefined && { from }) };
      if (from !== undefined || isDry) {
        await withMirrorIfAny(config, async (mirror) => {
          if (from !== undefined) checkFrom(mirror, from, context.clock.now());
          if (isDry) await dryRun(context, config, request, options, mirror);
        });
      }
      if (!isDry) await runOnce(context, config, options, (keeper) => keeper.run(request, context.signal));
    });
}

/** @throws CatchwordError MIRROR_BUSY if a daemon is active, or a relay delivers events that name the source */
function requireIdle({ daemonLease, relayLease }: Store, nowMs: number): void {
  const daemon = daemonLease.holder(nowMs);
  const holder = daemon ?? relayLease.holder(nowMs);
  if (holder === null) return;
  const { doing } = daemon === null ? LEASES.relay : LEASES.daemon;
  throw new CatchwordError('MIRROR_BUSY', `process ${holder.pid} on ${holder.host} ${doing}`, {
    hint: 'Stop the daemon (or the keeper and the relay), adopt the new address, and start it again.',
  });
}

function adoptCommand(context: CommandContext): Command {
  return new Command('adopt')
    .option('--json', 'print the run as one JSON document')
    .action(async (options: JsonOption) => {
      const config = loadSettings(context, 'source');
      const { address } = sourceIdentity(config);
      const noted = await withMirror(config, false, (store) => {
        requireIdle(store, context.clock.now());
        return store.source.noted();
      });
      const adopting = noted !== null && noted.address !== address;
      if (!adopting && noted?.unfinished !== true) {
        const text = `nothing to adopt: ${address} is the address of this mirror's service`;
        return print(context, options, { json: { adopted: false, address }, text });
      }
      const notice = adopting
        ? `${config.db} was read from ${noted.address} and is continued with ${address}: everything is read again; ` +
          'products that are not there are removed, within CATCHWORD_REMOVAL_LIMIT'
        : `resuming the unfinished full run of ${address}`;
      context.stderr.write(`${notice}\n`);
      await runOnce(context, config, { ...options, adopting }, (keeper) =>
        adopting ? keeper.adopt(context.signal) : keeper.run({ kind: 'full' }, context.signal),
      );
    });
}

/** The commands that make a run. */
export function syncCommands(context: CommandContext): [sync: Command, adopt: Command] {
  return [syncCommand(context), adoptCommand(context)];
}
