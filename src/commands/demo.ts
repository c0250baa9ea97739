import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { sameContent } from '../catalog/content.ts';
import type { Run } from '../catalog/run.ts';
import { loadConfig, requireSource } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import { SANDBOX_DEFAULTS } from '../sandbox/options.ts';
import { type Sandbox, startSandbox } from '../sandbox/server.ts';
import { createHistory } from '../store/history.ts';
import type { Store } from '../store/store.ts';
import { commandLog } from './shared/command-log.ts';
import type { CommandContext } from './shared/context.ts';
import { colours, count, plural, printJson, printLine, size, table } from './shared/format.ts';
import { type KeeperService, startKeeper } from './shared/pipeline.ts';
import { showProgress } from './shared/progress.ts';
import { runSummary } from './sync.ts';

const ITEMS = 20_000;
const MUTATION = { create: 3, update: 4, remove: 2, seed: 7 };

interface Differences {
  readonly compared: number;
  /** Products that differ, or that only the source has. */
  readonly different: number;
  /** Products that only the mirror has. */
  readonly onlyHere: number;
}

/** Compares the mirror with what the sandbox holds, product by product. */
async function compare(store: Store, sandbox: Sandbox): Promise<Differences> {
  const response = await fetch(`${sandbox.url}/_sandbox/truth`);
  if (!response.ok) throw new CatchwordError('SOURCE_REFUSED', `the sandbox answered ${response.status}`);
  const lines = (await response.text()).split('\n').filter((line) => line !== '');
  let different = 0;
  for (const line of lines) {
    const { vbid } = JSON.parse(line) as { vbid: string };
    const row = store.products.get(vbid);
    if (row === undefined || !sameContent(row.body, line)) different++;
  }
  return { compared: lines.length, different, onlyHere: store.products.living() - lines.length + different };
}

async function load(service: KeeperService, kind: Run['kind'], signal: AbortSignal): Promise<Run> {
  const run = await service.keeper.run({ kind }, signal);
  if (run === null) throw new CatchwordError('RUN_NOT_ACTIVE', 'no run was started');
  return run;
}

async function demo(context: CommandContext, json: boolean): Promise<void> {
  const say = json ? () => {} : (text = '') => printLine(context, text);
  const c = colours(context, context.stdout);
  const directory = mkdtempSync(join(tmpdir(), 'catchword-demo-'));
  const sandbox = await startSandbox({ items: ITEMS, details: true });
  const display = showProgress(context);
  const config = requireSource(
    loadConfig({
      CATCHWORD_BASE_URL: sandbox.url,
      CATCHWORD_API_KEY: SANDBOX_DEFAULTS.apiKey,
      CATCHWORD_ACCESS_TOKEN: SANDBOX_DEFAULTS.accessToken,
      CATCHWORD_RATE_LIMIT: 'off',
      CATCHWORD_DELTA_OVERLAP: '1s',
      CATCHWORD_DB: join(directory, 'catalog.db'),
    }),
  );
  let service: KeeperService | undefined;
  try {
    service = await startKeeper({
      ...{ config, clock: context.clock, log: commandLog(context, 'warn'), fetching: true },
      onProgress: display.update,
    });
    say(c.bold(`1. a service with ${count(ITEMS)} products, at ${sandbox.url} (catchword sandbox)`));
    say(c.bold('2. everything is read into an SQLite mirror (catchword sync)'));
    const full = await load(service, 'full', context.signal);
    display.stop();
    say(runSummary(context, full));
    say(c.bold('3. the catalog moves: 3 products are created, 4 updated, 2 withdrawn'));
    sandbox.catalog.mutate(MUTATION);
    say(c.bold('4. only what changed is read (catchword sync)'));
    const delta = await load(service, 'delta', context.signal);
    say(runSummary(context, delta));
    say(c.bold('5. what a downstream store is told, in order (catchword changes)'));
    const { store } = service;
    const changes = createHistory(store).after(full.created, 100);
    say(
      table(
        ['seq', 'op', 'vbid', 'what it was before'],
        changes.map(({ seq, op, vbid, before, added }) => [
          seq,
          op,
          vbid,
          before === null ? '–' : [before, ...added.map((key) => `without ${key}`)].join(' ').slice(0, 70),
        ]),
      ),
    );
    say(c.bold('6. found by words (catchword search history)'));
    const hits = store.search('history', 3);
    say(
      table(
        ['vbid', 'title', 'publisher'],
        hits.map((hit) => [hit.vbid, hit.title, hit.publisher]),
      ),
    );
    const differences = await compare(store, sandbox);
    const verdict =
      differences.different === 0
        ? c.green(`all ${plural(differences.compared, 'product')} of the service are here, each the same`)
        : c.red(`${plural(differences.different, 'product')} differ from the service`);
    say(c.bold(`7. compared one by one: ${verdict}`));
    say(
      `   and ${plural(differences.onlyHere, 'withdrawn product')}, announced by the service for ten days; ${size(store.sizeBytes())} on disk`,
    );
    if (json) printJson(context, { full, delta, changes: changes.length, ...differences });
    context.setExitCode(differences.different === 0 ? 0 : 3);
  } finally {
    display.stop();
    await service?.stop();
    await sandbox.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

export function demoCommand(context: CommandContext): Command {
  return new Command('demo')
    .description('try it on this machine: a sandbox, a full load, changes, a delta load')
    .option('--json', 'print one JSON document')
    .action((options: { json?: boolean }) => demo(context, options.json ?? false));
}
