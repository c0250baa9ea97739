import { dirname, join } from 'node:path';
import { sameContent } from '../catalog/content.ts';
import { isWithdrawnBody } from '../catalog/product.ts';
import type { Run, RunRequest } from '../catalog/run.ts';
import { sourceIdentity } from '../catalog/source.ts';
import { deltaFrom } from '../catalog/watermark.ts';
import type { SourceConfig } from '../config.ts';
import { printable } from '../printable.ts';
import { mirrorExists } from '../store/place.ts';
import { openStore, type Store } from '../store/store.ts';
import { compareMirrors } from '../sync/compare-mirrors.ts';
import { requireSameSource, rereadNotice } from '../sync/source.ts';
import { removalLimitOf } from '../sync/sweep.ts';
import type { CommandContext } from './shared/context.ts';
import { count, plural, printJson, printLine } from './shared/format.ts';
import { checkPause, forgetPause, toPerson } from './shared/rate-limit.ts';
import { readAside } from './shared/scratch-mirror.ts';

type Fate = 'created' | 'updated' | 'removed' | 'restored' | 'missing';

interface Planned {
  readonly fate: Fate;
  readonly vbid: string;
  readonly title: string | null;
}

/** What a run would do, and the first products of each kind. */
interface Forecast {
  readonly counts: Record<Fate, number>;
  readonly examples: Planned[];
  /** Removals that were not announced. */
  unexpected: number;
}

const EXAMPLES = 10;

function appears(here: Store, vbid: string): Fate {
  return here.products.get(vbid)?.removedAt == null ? 'created' : 'restored';
}

function* fullForecast(
  here: Store,
  there: Store,
  run: Run,
  config: SourceConfig,
): Generator<Planned & { body?: string }> {
  for (const found of compareMirrors(here, there, config.ignoreFields)) {
    const { vbid, title } = found;
    if (found.kind === 'only-there') yield { fate: appears(here, vbid), vbid, title };
    else if (found.kind === 'differs') yield { fate: 'updated', vbid, title };
    else yield { fate: run.proof === 'sealed' ? 'removed' : 'missing', vbid, title, body: found.body };
  }
}

function* deltaForecast(here: Store, there: Store, config: SourceConfig): Generator<Planned & { body?: string }> {
  for (const { vbid, title, body } of there.products.all()) {
    const known = here.products.get(vbid);
    const gone = config.withdrawnAs === 'removed' && isWithdrawnBody(body);
    if (known === undefined || known.removedAt !== null) {
      if (!gone) yield { fate: appears(here, vbid), vbid, title };
    } else if (gone) yield { fate: 'removed', vbid, title, body };
    else if (!sameContent(known.body, body, config.ignoreFields)) yield { fate: 'updated', vbid, title };
  }
}

function tally(planned: Iterable<Planned & { body?: string }>): Forecast {
  const counts = { created: 0, updated: 0, removed: 0, restored: 0, missing: 0 };
  const examples: Planned[] = [];
  let unexpected = 0;
  for (const { body, ...one } of planned) {
    if (counts[one.fate]++ < EXAMPLES) examples.push(one);
    if (one.fate === 'removed' && body !== undefined && !isWithdrawnBody(body)) unexpected++;
  }
  return { counts, examples, unexpected };
}

/** `sync --dry-run`: reads what a run would read, and prints what it would create, change and remove. */
export async function dryRun(
  context: CommandContext,
  config: SourceConfig,
  request: RunRequest,
  { json: asJson, now }: { readonly json?: boolean; readonly now?: boolean },
): Promise<void> {
  const { db, dbMode: mode } = config;
  const here = mirrorExists(db) ? openStore(db, { mustExist: true, forReading: true, mode }) : null;
  try {
    if (here !== null) {
      requireSameSource(here, sourceIdentity(config));
      if (now) forgetPause(here, context.clock.now(), toPerson(context));
      else checkPause(here, context.clock.now());
    }
    const reread = here === null ? null : rereadNotice(here, sourceIdentity(config));
    if (reread !== null) toPerson(context)(reread);
    const readUpTo = here?.readUpTo() ?? null;
    const from = request.from ?? (readUpTo === null ? undefined : deltaFrom(readUpTo, config.deltaOverlapMs));
    const full = request.kind === 'full' || from === undefined || reread !== null;
    // A delta tells of withdrawn products, which an empty mirror would not take where they count as removed.
    const own: SourceConfig = full ? config : { ...config, withdrawnAs: 'updated' };
    await readAside(context, own, here, now, async (aside) => {
      const run = await aside.run(full ? { kind: 'full' } : { kind: 'delta', from });
      if (full && here !== null) await aside.settle(run, here);
      const known = here ?? openStore(join(dirname(aside.store.path), 'empty.db'));
      try {
        const planned = full
          ? fullForecast(known, aside.store, run, config)
          : deltaForecast(known, aside.store, config);
        print(context, run, tally(planned), removalLimitOf(config, known.products.living()), asJson);
      } finally {
        if (known !== here) known.close();
      }
    });
  } finally {
    here?.close();
  }
}

function print(
  context: CommandContext,
  run: Run,
  forecast: Forecast,
  limit: number,
  asJson: boolean | undefined,
): void {
  const { counts, examples, unexpected } = forecast;
  const held = run.kind === 'full' && unexpected > 0 && (unexpected > limit || run.items === 0);
  // As the run itself would say it: what the source announced does not count.
  const why =
    run.items === 0
      ? ', held for approval: the source lists no product at all'
      : `, held for approval: ${count(unexpected)} were not announced, more than the limit of ${count(limit)}`;
  if (asJson) {
    const { kind, proof, reasons, items, requests } = run;
    const limits = { held, unexpected, removal_limit: limit };
    printJson(context, { dry_run: true, kind, proof, reasons, items, requests, ...counts, ...limits, examples });
    return;
  }
  printLine(
    context,
    `a ${run.kind} load of ${plural(run.items, 'product')} would make these changes; no product was changed`,
  );
  for (const [fate, number] of Object.entries(counts)) {
    if (fate === 'missing' && number === 0) continue;
    printLine(context, `  ${fate.padEnd(9)}${count(number)}${fate === 'removed' && held ? why : ''}`);
    for (const { vbid, title } of examples.filter((one) => one.fate === fate)) {
      printLine(context, `           ${vbid}  ${printable(title ?? '')}`);
    }
    if (number > EXAMPLES) printLine(context, `           … and ${count(number - EXAMPLES)} more`);
  }
  if (run.proof !== null)
    printLine(context, `  proof    ${run.proof}${run.reasons.map((reason) => `: ${reason}`).join('')}`);
}
