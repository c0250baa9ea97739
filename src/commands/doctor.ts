import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { sourceTimeOf } from '../catalog/watermark.ts';
import { createCatalogClient } from '../client/client.ts';
import { type Config, loadConfig, OPTIONS, requireSource } from '../config.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import { checkCron } from '../schedule/scheduler.ts';
import { openStore } from '../store/store.ts';
import { createReadWindow } from '../sync/fetch-page.ts';
import type { CommandContext } from './context.ts';
import { colours, count, duration, moment, plural, printJson, printLine, size } from './format.ts';

type Level = 'ok' | 'note' | 'failed';

interface Finding {
  readonly check: string;
  readonly level: Level;
  readonly text: string;
  readonly hint?: string;
}

/** Clocks that differ by more are worth a word; the watermark follows the source's, so nothing is lost. */
const SKEW_MS = 60_000;

type Check = () => Promise<Omit<Finding, 'check'>> | Omit<Finding, 'check'>;

async function examine(check: string, work: Check): Promise<Finding> {
  try {
    return { check, ...(await work()) };
  } catch (error) {
    const hint = error instanceof CatchwordError ? error.hint : undefined;
    return { check, level: 'failed', text: messageOf(error), ...(hint !== undefined && { hint }) };
  }
}

function settings(context: CommandContext, config: Config): Omit<Finding, 'check'> {
  requireSource(config);
  checkCron(OPTIONS.fullCron.env, config.fullCron);
  checkCron(OPTIONS.deltaCron.env, config.deltaCron);
  const known = Object.values(OPTIONS).flatMap(({ env }) => [env, `${env}_FILE`]);
  const unknown = Object.keys(context.environment).filter(
    (name) => name.startsWith('CATCHWORD_') && !known.includes(name),
  );
  if (unknown.length === 0) return { level: 'ok', text: 'complete' };
  return {
    level: 'note',
    text: `not known: ${unknown.join(', ')}`,
    hint: 'Look for a slip of the pen; what is not known has no effect.',
  };
}

function mirror(config: Config): Omit<Finding, 'check'> {
  if (!existsSync(config.db))
    return { level: 'note', text: `${config.db} does not exist yet`, hint: 'The first sync makes it.' };
  const store = openStore(config.db);
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

async function source(context: CommandContext, config: Config): Promise<Omit<Finding, 'check'>> {
  const { clock, signal } = context;
  const client = createCatalogClient(requireSource(config), clock);
  try {
    const task = { mirror: '', runId: 0, pass: 0, window: { page: 1, perPage: 1 }, from: null, maxAttempts: 1 };
    const { page, response } = await createReadWindow(client)(task, signal, 1);
    const tookMs = response.receivedAt - response.requestedAt;
    const answer = `${count(page.envelope.numItems)} products, answered in ${duration(tookMs)}`;
    if (response.sourceTime === null) {
      return {
        level: 'note',
        text: `${answer}, without a Date`,
        hint: 'Local time less five minutes is used as its clock.',
      };
    }
    const skewMs = sourceTimeOf(response) - response.requestedAt;
    if (Math.abs(skewMs) < SKEW_MS) return { level: 'ok', text: answer };
    const off = `${duration(Math.abs(skewMs))} ${skewMs < 0 ? 'behind' : 'ahead of'} this machine's`;
    return {
      level: 'note',
      text: `${answer}; its clock is ${off}`,
      hint: 'Nothing is lost: watermarks follow its clock.',
    };
  } finally {
    await client.close();
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
  let config: Config;
  try {
    config = loadConfig(context.environment);
  } catch (error) {
    return [
      ...findings,
      await examine('settings', () => {
        throw error;
      }),
    ];
  }
  findings.push(await examine('settings', () => settings(context, config)));
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
  if (config.baseUrl !== undefined && config.apiKey !== undefined) {
    findings.push(await examine('source', () => source(context, config)));
  }
  return findings;
}

export function doctorCommand(context: CommandContext): Command {
  return new Command('doctor')
    .description('checks settings, mirror, Redis, source and clock, and says what to do')
    .option('--json', 'print one JSON document')
    .action(async (options: { json?: boolean }) => {
      const findings = await examineAll(context);
      if (options.json) printJson(context, findings);
      else for (const finding of findings) printFinding(context, finding);
      if (findings.some(({ level }) => level === 'failed')) context.setExitCode(1);
    });
}
