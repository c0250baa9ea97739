import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Command } from 'commander';
import { sourceIdentity } from '../../catalog/source.ts';
import { type Config, requireSource, type SinkSetting, type SourceConfig } from '../../config.ts';
import { CatchwordError, messageOf, systemCodeOf } from '../../errors.ts';
import { sinkConfig, withoutSecrets } from '../../relay/sink-config.ts';
import { completeAt } from '../../report/status.ts';
import { mirrorExists } from '../../store/place.ts';
import { openStore, type Store } from '../../store/store.ts';
import { requireSameSource } from '../../sync/source.ts';
import type { CommandContext } from '../shared/context.ts';
import { ago, colours, moment, plural, printJson, printLine, size } from '../shared/format.ts';
import { checkedSettings, settingProblems, unknownSettings } from '../shared/settings.ts';
import { type Finding, probeSource } from './source-probes.ts';

const SINK_TIMEOUT_MS = 10_000;

type Check = () => Promise<Omit<Finding, 'check'>> | Omit<Finding, 'check'>;

async function examine(check: string, work: Check): Promise<Finding> {
  try {
    return { check, ...(await work()) };
  } catch (error) {
    const hint = error instanceof CatchwordError ? error.hint : undefined;
    return { check, level: 'failed', text: messageOf(error), ...(hint !== undefined && { hint }) };
  }
}

/** A finding for each setting that is wrong, and for each variable that is not a setting. */
function settings({ environment }: CommandContext): Finding[] {
  const check = 'settings';
  const wrong = settingProblems(environment, 'source').map(
    ({ message: text, hint }): Finding => ({ check, level: 'failed', text, ...(hint !== undefined && { hint }) }),
  );
  const unknown = unknownSettings(environment).map((text): Finding => ({ check, level: 'note', text }));
  return wrong.length + unknown.length === 0 ? [{ check, level: 'ok', text: 'complete' }] : [...wrong, ...unknown];
}

/** The directory that is there of those that lead to `path`. */
function nearestDirectory(path: string): string {
  const directory = dirname(path);
  return existsSync(directory) || directory === path ? directory : nearestDirectory(directory);
}

/** SQLite makes files beside the mirror, so its directory has to be writable, too. */
function checkDirectory(db: string): void {
  const directory = nearestDirectory(resolve(db));
  const failure = (what: string) =>
    new CatchwordError('MIRROR_UNUSABLE', `${db}: ${directory} ${what}`, {
      hint: 'Set CATCHWORD_DB to a place that this user may write, or give this user the right to write it.',
    });
  if (!statSync(directory).isDirectory()) throw failure('is not a directory');
  try {
    accessSync(directory, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw failure(`cannot be written (${systemCodeOf(error) ?? messageOf(error)})`);
  }
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function mirror(config: Config, nowMs: number): Omit<Finding, 'check'> {
  if (!mirrorExists(config.db)) {
    checkDirectory(config.db);
    return { level: 'note', text: `${config.db} does not exist yet`, hint: 'The first sync makes it.' };
  }
  // Another user may be allowed to read it only.
  if (mayWrite(config.db)) checkDirectory(config.db);
  const store = openStore(config.db, { forReading: true, mode: config.dbMode });
  try {
    const problems = store.quickCheck();
    if (problems.length > 0) {
      return {
        level: 'failed',
        text: `${config.db} is damaged: ${problems[0] ?? ''}`,
        hint: 'Move it away and run: npx catchword sync.',
      };
    }
    const completedAt = completeAt(store);
    const fresh =
      completedAt === null
        ? 'never complete: the first full load has not finished'
        : `complete up to ${moment(store.watermark())} UTC, ${ago(completedAt, nowMs)}`;
    return {
      level: 'ok',
      text: `${plural(store.products.living(), 'product')}, ${size(store.sizeBytes())}, sound, ${fresh}`,
    };
  } finally {
    store.close();
  }
}

async function checkSink(setting: SinkSetting): Promise<Omit<Finding, 'check'>> {
  const config = sinkConfig(setting);
  const about = `${config.name} (${config.kind}, ${config.address})`;
  const sink = await config.make();
  try {
    return { level: 'ok', text: `${about}: ${await sink.check(AbortSignal.timeout(SINK_TIMEOUT_MS))}` };
  } catch (error) {
    return {
      level: 'failed',
      text: `${about}: ${withoutSecrets(config, messageOf(error))}`,
      hint: `Check ${setting.env}, and the store that it names.`,
    };
  } finally {
    await sink.close();
  }
}

function printFinding(context: CommandContext, { check, level, text, hint }: Finding): void {
  const c = colours(context, context.stdout);
  const mark = { ok: c.green('ok    '), note: c.yellow('note  '), failed: c.red('failed') }[level];
  printLine(context, `${mark} ${check.padEnd(10)} ${text}`);
  if (hint !== undefined) printLine(context, `${' '.repeat(18)}${c.dim(hint)}`);
}

function tryOpen(config: Config): Store | null {
  if (!mirrorExists(config.db)) return null;
  try {
    return openStore(config.db, { mustExist: true, forReading: true, mode: config.dbMode });
  } catch {
    // Its own check says why.
    return null;
  }
}

/** The source is only asked where it is that of the mirror. */
async function askSource(context: CommandContext, config: SourceConfig): Promise<Finding[]> {
  const here = tryOpen(config);
  try {
    const same = await examine('address', () => {
      const identity = sourceIdentity(config);
      if (here !== null) requireSameSource(here, identity);
      return {
        level: 'ok',
        text: `${identity.address}${here?.source.noted() == null ? '' : ', as the mirror has it'}`,
      };
    });
    return same.level === 'ok' ? [same, ...(await probeSource(context, config, here, examine))] : [same];
  } finally {
    here?.close();
  }
}

async function examineAll(context: CommandContext): Promise<Finding[]> {
  const findings = [await examine('Node.js', () => ({ level: 'ok', text: process.version }))];
  findings.push(...settings(context));
  // The checks below can do without settings that are missing; with wrong ones they would look at the wrong things.
  if (settingProblems(context.environment, 'nothing').length > 0) return findings;
  const config = checkedSettings(context.environment, 'nothing');
  findings.push(await examine('mirror', () => mirror(config, context.clock.now())));
  const { redisUrl } = config;
  findings.push(
    await examine('Redis', async () => {
      if (redisUrl === undefined) return { level: 'ok', text: 'not used (REDIS_URL is not set)' };
      const { checkRedis } = await import('../../queue/bullmq/redis.ts');
      await checkRedis(redisUrl);
      return { level: 'ok', text: 'reachable, never evicts' };
    }),
  );
  for (const sink of config.sinks) findings.push(await examine('sink', () => checkSink(sink)));
  if (config.baseUrl !== undefined && config.apiKey !== undefined) {
    findings.push(...(await askSource(context, requireSource(config))));
  }
  return findings;
}

export function doctorCommand(context: CommandContext): Command {
  return new Command('doctor')
    .description('check settings, mirror, Redis, sinks and source, and say what to do')
    .option('--json', 'print one JSON document')
    .action(async (options: { json?: boolean }) => {
      const findings = await examineAll(context);
      if (options.json) printJson(context, findings);
      else for (const finding of findings) printFinding(context, finding);
      if (findings.some(({ level }) => level === 'failed')) context.setExitCode(1);
    });
}
