import { Command } from 'commander';
import { isWithdrawnBody } from '../catalog/product.ts';
import type { Run } from '../catalog/run.ts';
import { selectionText, sourceIdentity } from '../catalog/source.ts';
import { deltaFrom } from '../catalog/watermark.ts';
import { CatchwordError } from '../errors.ts';
import { printable } from '../printable.ts';
import { openStore, type Store } from '../store/store.ts';
import { compareMirrors, type Disagreement } from '../sync/compare-mirrors.ts';
import { requireSameSource, selectionChanges } from '../sync/source.ts';
import type { CommandContext } from './shared/context.ts';
import { count, moment, plural, printJson, printLine } from './shared/format.ts';
import { checkPause, forgetPause, toPerson } from './shared/rate-limit.ts';
import { readAside } from './shared/scratch-mirror.ts';
import { loadSettings } from './shared/settings.ts';

/** Drift is what the next run would bring anyway; a difference is what should not be. */
interface Verdict {
  differences: number;
  drifted: number;
  /** Only here, by a reading that cannot prove it. */
  unproven: number;
}

const WORDS = { 'only-here': 'only here', 'only-there': 'only there', differs: 'differs' } as const;

function line(found: Disagreement, drift: boolean): string {
  const fields = found.kind === 'differs' ? `  ${found.fields.join(', ')}` : '';
  return `${drift ? 'drift' : 'DIFF '}  ${WORDS[found.kind].padEnd(10)}  ${found.vbid}  ${printable(found.title ?? '')}${printable(fields)}`;
}

function json(found: Disagreement, drift: boolean): Record<string, unknown> {
  const { kind, vbid, title } = found;
  return { kind, vbid, title, ...(found.kind === 'differs' && { fields: found.fields }), drift };
}

/** Whether the product changed at the source since the mirror was last complete, so that the next delta brings it. */
function driftOf(there: Store, delta: Run): (found: Disagreement) => boolean {
  const changed = new Set<string>();
  for (const ids of there.runs.eachIds(delta.id)) {
    for (const id of ids) {
      const vbid = there.removals.candidate(id)?.vbid;
      if (vbid !== undefined) changed.add(vbid);
    }
  }
  return (found) =>
    changed.has(found.vbid) ||
    // Announced as withdrawn: the next full load removes it.
    (found.kind === 'only-here' && isWithdrawnBody(found.body));
}

export function verifyCommand(context: CommandContext): Command {
  return new Command('verify')
    .description('read the source again and print every difference; changes no product')
    .option('--now', 'ask the source now, although it asked for a pause, and end that pause for a running daemon too')
    .option('--json', 'print NDJSON: one line for each difference, then the summary')
    .action(async (options: { now?: boolean; json?: boolean }) => {
      const config = loadSettings(context, 'source');
      const here = openStore(config.db, { mustExist: true, forReading: true, mode: config.dbMode });
      try {
        const readUpTo = here.readUpTo();
        if (readUpTo === null) {
          throw new CatchwordError('USAGE', 'the mirror was never filled: there is nothing to verify', {
            hint: 'Fill it with: npx catchword sync.',
          });
        }
        requireSameSource(here, sourceIdentity(config));
        if (options.now) forgetPause(here, context.clock.now(), toPerson(context));
        else checkPause(here, context.clock.now());
        const changes = selectionChanges(
          here.source.noted()?.selection ?? selectionText(config),
          selectionText(config),
        );
        if (changes !== '') {
          context.stderr.write(`${changes} since the mirror was read: products may differ in what that selects\n`);
        }
        // Withdrawn products are kept there, whatever they count as here, so that drift can be told.
        const there = { ...config, withdrawnAs: 'updated' as const };
        await readAside(context, there, here, options.now, async (aside) => {
          const full = await aside.run({ kind: 'full' });
          const delta =
            (await aside.settle(full, here, readUpTo)) ??
            (await aside.run({ kind: 'delta', from: deltaFrom(readUpTo, config.deltaOverlapMs) }));
          const isDrift = driftOf(aside.store, delta);
          const verdict: Verdict = { differences: 0, drifted: 0, unproven: 0 };
          for (const found of compareMirrors(here, aside.store, config.ignoreFields)) {
            if (found.kind === 'only-there' && config.withdrawnAs === 'removed' && isWithdrawnBody(found.body))
              continue;
            const drift = isDrift(found);
            if (found.kind === 'only-here' && !drift && full.proof !== 'sealed') {
              verdict.unproven++;
              continue;
            }
            if (drift) verdict.drifted++;
            else verdict.differences++;
            if (options.json) printJson(context, json(found, drift));
            else printLine(context, line(found, drift));
          }
          summarize(context, verdict, full, here, options.json);
        });
      } finally {
        here.close();
      }
    });
}

function summarize(context: CommandContext, verdict: Verdict, full: Run, here: Store, asJson?: boolean): void {
  const { differences, drifted, unproven } = verdict;
  if (differences > 0) context.setExitCode(3);
  if (asJson) {
    const { proof, reasons, items } = full;
    printJson(context, { summary: { products: items, proof, reasons, differences, drifted, unproven } });
    return;
  }
  printLine(
    context,
    `read ${plural(full.items, 'product')} from the source, proof ${full.proof}${full.reasons.map((r) => `: ${r}`).join('')}`,
  );
  printLine(
    context,
    `${plural(differences, 'difference')}, ${count(drifted)} drifted since ${moment(here.watermark())} UTC`,
  );
  if (unproven > 0)
    printLine(context, `${plural(unproven, 'product')} not seen at the source, which this reading cannot prove`);
  if (differences > 0) printLine(context, 'Bring the mirror up to date with: npx catchword sync --full.');
}
