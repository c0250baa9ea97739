import { parseArgs } from 'node:util';
import { ORDERS } from './catalog.ts';
import { simulate } from './history.ts';
import { drawScenario, type Scenario, UNDISTURBED } from './scenario.ts';
import { FAULTLESS, IN_TIME } from './source.ts';

/**
 * Prints how often runs of 20,000 products (1,000 a page, 50 pages a minute) are sealed, by the order of the list and
 * the number of changes per page read.
 */
const { values } = parseArgs({ options: { histories: { type: 'string', default: '50' } } });

const CHURN = [0, 0.1, 1, 3];
const PLAIN_PAGES = 20;

function scenarioOf(seed: number, order: Scenario['order'], churn: number, lookup: boolean): Partial<Scenario> {
  const { behaviour } = drawScenario(seed);
  const calm = { ...FAULTLESS, ...IN_TIME, maxPageSize: null, latencyMs: 1_000, jitter: 2, dated: true };
  return {
    ...UNDISTURBED,
    perPage: 1000,
    seam: 10,
    size: 1000 * PLAIN_PAGES,
    order,
    churn,
    behaviour: { ...behaviour, ...calm, lookup },
    rate: 50,
    steady: true,
    concurrency: 8,
    overlapMs: 300_000,
    runs: ['full', 'full', 'full'],
  };
}

function cell(text: string | number): string {
  return String(text).padStart(10);
}

const HEAD = ['changes', 'full runs', 'sealed', 'requests', 'repairs', 'false', 'with'];
const UNDER = ['a page', '', '%', 'to plain', 'a run', 'removals', 'lookup'];
for (const line of [HEAD, UNDER]) process.stdout.write(`${'order'.padEnd(13)}${line.map(cell).join('')}\n`);

let violations = 0;
for (const order of ORDERS) {
  for (const churn of CHURN) {
    const sums = { runs: 0, sealed: 0, requests: 0, repairs: 0, removals: 0, withLookup: 0 };
    for (let seed = 1; seed <= Number(values.histories); seed++) {
      // Sealed runs make no lookups.
      for (const lookup of order === 'unstable' || order === 'ties' ? [false, true] : [false]) {
        const result = await simulate(seed, { scenario: scenarioOf(seed, order, churn, lookup) });
        if (result.violation !== null) {
          violations++;
          process.stdout.write(`${order} ${churn} seed ${seed}: ${result.violation}\n`);
        }
        if (lookup) {
          sums.withLookup += result.falseRemovals;
          continue;
        }
        // Without the last run, during which nothing changes.
        const runs = result.fullRuns.slice(0, 3);
        sums.runs += runs.length;
        sums.sealed += runs.filter(({ proof }) => proof === 'sealed').length;
        sums.requests += runs.reduce((sum, { evidence }) => sum + (evidence?.requests ?? 0), 0);
        sums.repairs += runs.reduce(
          (sum, { evidence }) => sum + (evidence?.lists.reduce((n, list) => n + list.repairs, 0) ?? 0),
          0,
        );
        sums.removals += result.falseRemovals;
      }
    }
    const { runs, sealed, requests, repairs, removals, withLookup } = sums;
    const cells = [churn, runs, ((100 * sealed) / runs).toFixed(1), (requests / runs / PLAIN_PAGES).toFixed(2)];
    process.stdout.write(
      `${order.padEnd(13)}${[...cells, (repairs / runs).toFixed(2), removals, withLookup].map(cell).join('')}\n`,
    );
  }
}
process.exitCode = violations > 0 ? 1 : 0;
