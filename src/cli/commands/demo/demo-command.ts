import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CatchwordError, EXIT, usageError } from '@catchword/base/errors';
import { sameContent } from '@catchword/catalog/content';
import type { Run } from '@catchword/catalog/run-types';
import { introduction } from '@catchword/sandbox/introduction';
import { SANDBOX_DEFAULTS } from '@catchword/sandbox/options';
import { type Sandbox, startSandbox } from '@catchword/sandbox/sandbox-server';
import { Command } from 'commander';
import { count, plural, size, table } from '../../../report/text.ts';
import { runSummary } from '../../../shown/run-summary.ts';
import { createHistory } from '../../../store/history/history.ts';
import type { Store } from '../../../store/store.ts';
import { startKeeper } from '../../roles/pipeline.ts';
import { checkedSettings } from '../shared/checked-settings.ts';
import type { CommandContext } from '../shared/command-context.ts';
import { colours, type JsonOption, print, printLine, wholeNumber } from '../shared/output-format.ts';
import { withProgress } from '../shared/show-progress.ts';
import { stay } from './demo-stay.ts';

const ITEMS = 20_000;
const MUTATION = { create: 3, update: 4, remove: 2, seed: 7 };

/** Counts products that differ, or that only the sandbox has (`different`), or only the mirror (`onlyHere`). */
async function compare({ products }: Store, { url }: Sandbox) {
  const response = await fetch(`${url}/_sandbox/truth`);
  if (!response.ok) throw new CatchwordError('SOURCE_REFUSED', `the sandbox answered ${response.status}`);
  const lines = (await response.text()).split('\n').filter((line) => line !== '');
  const different = lines.filter((line) => {
    const row = products.get((JSON.parse(line) as { vbid: string }).vbid);
    return row === undefined || !sameContent(row.body, line);
  }).length;
  return { compared: lines.length, different, onlyHere: products.living() - lines.length + different };
}

async function showOnce(context: CommandContext, json: boolean, db: string): Promise<void> {
  const sandbox = await startSandbox({ items: ITEMS, details: true });
  const c = colours(context);
  const say = (text: string): void => {
    if (!json) printLine(context, text);
  };
  const heading = (text: string): void => say(c.bold(text));
  const { environment } = introduction(sandbox, SANDBOX_DEFAULTS);
  const config = checkedSettings({ ...environment, CATCHWORD_DB: db }, 'source');
  try {
    await withProgress(context, config, async (runContext, display) => {
      const kept = await startKeeper({ ...runContext, fetching: true });
      const { store, keeper } = kept;
      async function load(kind: Run['kind']): Promise<Run> {
        const run = await keeper.run({ kind }, context.signal);
        display.stop();
        if (run === null) throw new CatchwordError('RUN_NOT_ACTIVE', 'no run was started');
        say(runSummary(c, run, context.clock.now()));
        return run;
      }
      try {
        heading(`1. a service with ${count(ITEMS)} products, at ${sandbox.url} (catchword sandbox)`);
        heading('2. everything is read into an SQLite mirror (catchword sync)');
        const full = await load('full');
        heading('3. the catalog moves: 3 products are created, 4 updated, 2 withdrawn');
        sandbox.catalog.mutate(MUTATION);
        heading('4. only what changed is read (catchword sync)');
        const delta = await load('delta');
        heading('5. what a downstream store gets, in order (catchword changes)');
        const changes = createHistory(store).after(full.created, 100);
        const changeRows = changes.map(({ seq, op, vbid, before, added }) => {
          const was = before === null ? '–' : [before, ...added.map((key) => `without ${key}`)].join(' ').slice(0, 70);
          return [seq, op, vbid, was];
        });
        say(table(['seq', 'op', 'vbid', 'what it was before'], changeRows));
        heading('6. found by words (catchword search history)');
        const hitRows = store.search('history', 3).map(({ vbid, title, publisher }) => [vbid, title, publisher]);
        say(table(['vbid', 'title', 'publisher'], hitRows));
        const comparison = await compare(store, sandbox);
        const { different, compared, onlyHere } = comparison;
        const same = `all ${plural(compared, 'product')} of the service are here, each the same`;
        const differs = `${plural(different, 'product')} differ from the service`;
        heading(`7. compared one by one: ${different === 0 ? c.green(same) : c.red(differs)}`);
        const withdrawn = `${plural(onlyHere, 'withdrawn product')}, announced by the service for ten days`;
        const text = `   and ${withdrawn}; ${size(store.sizeBytes())} on disk`;
        print(context, { json }, { json: { full, delta, changes: changes.length, ...comparison }, text });
        if (different > 0) context.setExitCode(EXIT.differences);
      } finally {
        await kept.stop();
      }
    });
  } finally {
    await sandbox.stop();
  }
}

export function demoCommand(context: CommandContext): Command {
  return new Command('demo')
    .option('--stay', 'keep a daemon running, and watch it in a browser')
    .option(
      '--port <n>',
      'with --stay: port of the page; default: 8080, or the next free one',
      wholeNumber('--port', 0, 65_535),
    )
    .option('--json', 'print one JSON document')
    .action(async ({ json, stay: stays, port }: JsonOption & { readonly stay?: true; readonly port?: number }) => {
      if (stays && json) throw usageError('--json cannot be used with --stay', 'Leave one of them out.');
      if (!stays && port !== undefined) throw usageError('--port is only for --stay', 'Use --stay --port 8080.');
      const directory = mkdtempSync(join(tmpdir(), 'catchword-demo-'));
      try {
        if (stays) await stay(context, { directory, port });
        else await showOnce(context, json === true, join(directory, 'catalog.db'));
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    });
}
