import { Command } from 'commander';
import { type Config, requireSource, type SinkSetting } from '../config.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import { sinkConfig, withoutSecrets } from '../relay/settings.ts';
import { mirrorExists } from '../store/place.ts';
import { openStore } from '../store/store.ts';
import type { CommandContext } from './context.ts';
import { colours, moment, plural, printJson, printLine, size } from './format.ts';
import { type Finding, probeSource } from './probe.ts';
import { checkedSettings, settingProblems, unknownSettings } from './settings.ts';

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

function mirror(config: Config): Omit<Finding, 'check'> {
  if (!mirrorExists(config.db))
    return { level: 'note', text: `${config.db} does not exist yet`, hint: 'The first sync makes it.' };
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
    const watermark = store.watermark();
    const fresh = watermark === null ? 'never filled' : `complete up to ${moment(watermark)} UTC`;
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
      hint: `Look at ${setting.env}, and at what it names.`,
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

async function examineAll(context: CommandContext): Promise<Finding[]> {
  const findings = [await examine('Node.js', () => ({ level: 'ok', text: process.version }))];
  findings.push(...settings(context));
  // What is missing keeps the rest from nothing; with wrong values, the wrong things would be looked at.
  if (settingProblems(context.environment, 'nothing').length > 0) return findings;
  const config = checkedSettings(context.environment, 'nothing');
  findings.push(await examine('mirror', () => mirror(config)));
  const { redisUrl } = config;
  findings.push(
    await examine('Redis', async () => {
      if (redisUrl === undefined) return { level: 'ok', text: 'not used (REDIS_URL is not set)' };
      const { checkRedis } = await import('../queue/redis.ts');
      await checkRedis(redisUrl);
      return { level: 'ok', text: 'reachable, never evicts' };
    }),
  );
  for (const sink of config.sinks) findings.push(await examine('sink', () => checkSink(sink)));
  if (config.baseUrl !== undefined && config.apiKey !== undefined) {
    findings.push(...(await probeSource(context, requireSource(config), examine)));
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
