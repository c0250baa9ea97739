import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { QUICK_SEEDS } from './quick-seeds.ts';
import { SABOTAGES, type Sabotage } from './sabotage.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MAX_SEEDS = 1000;
const NOT_COPIED = ['.git', 'build', 'data', 'dist', 'node_modules'];

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    /** Every second one, for example, from the first on: 1/2. */
    shard: { type: 'string', default: '1/1' },
    seeds: { type: 'string', default: String(MAX_SEEDS) },
    /** Only histories in this world; its name, or a part of it. */
    world: { type: 'string', default: '' },
  },
});

/** Links what is installed; the packages of this project are those of the copy, because one of them may have the bug. */
function linkModules(target: string): void {
  mkdirSync(join(target, '@catchword'), { recursive: true });
  const installed = readdirSync(join(ROOT, 'node_modules')).filter(
    (name) => !/^(@catchword|catchword-client)$/.test(name),
  );
  for (const name of installed) symlinkSync(join(ROOT, 'node_modules', name), join(target, name));
  for (const name of readdirSync(join(ROOT, 'node_modules/@catchword')))
    symlinkSync(join(target, '../packages', name), join(target, '@catchword', name));
  symlinkSync(join(target, '../packages/client'), join(target, 'catchword-client'));
}

/** Copies the program and inserts the bug. */
function damagedCopy({ name, edits }: Sabotage): string {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-sabotage-'));
  // Tests read documents and examples, too.
  cpSync(ROOT, directory, { recursive: true, filter: (path) => !NOT_COPIED.includes(relative(ROOT, path)) });
  linkModules(join(directory, 'node_modules'));
  // A bug may leave names unused, and the program is compiled before tests run.
  writeFileSync(
    join(directory, 'tsconfig.json'),
    readFileSync(join(ROOT, 'tsconfig.json'), 'utf8').replace(/("noUnused\w+"): true/g, '$1: false'),
  );
  for (const { file, find, replace } of edits) {
    const path = join(directory, file);
    const text = readFileSync(path, 'utf8');
    if (text.split(find).length !== 2)
      throw new Error(`"${name}" is out of date: ${file} does not contain this exactly once: ${find}`);
    writeFileSync(
      path,
      text.replace(find, () => replace),
    );
  }
  return directory;
}

interface Caught {
  /** The seed, or `a quick test` or `a slow test`. */
  readonly by: string;
  readonly found: string;
  /** Whether `npm test` finds it. */
  readonly isQuick: boolean;
}

function runSimulator({ name }: Sabotage, directory: string): Caught | null {
  const seeds = ['--until-found', '--seeds', `1..${values.seeds}`, '--world', values.world];
  const args = ['--import', 'tsx', 'test/simulate/main.ts', ...seeds];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: directory, encoding: 'utf8' });
  const [, seed, found = ''] = /^seed (\d+): (.*)/m.exec(stdout) ?? [];
  if (seed !== undefined) return { by: `seed ${seed}`, found, isQuick: QUICK_SEEDS.includes(Number(seed)) };
  if (!/histories in/.test(stdout)) throw new Error(`"${name}" does not run:\n${stderr.slice(0, 2000)}`);
  return null;
}

function runTest({ name }: Sabotage, directory: string, test: string): Caught | null {
  const args = ['node_modules/vitest/vitest.mjs', 'run', test, '--reporter=json'];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: directory, encoding: 'utf8' });
  const start = stdout.indexOf('{"num');
  if (start === -1) throw new Error(`"${name}" does not run:\n${stderr.slice(0, 2000)}`);
  const { numTotalTests, numFailedTests, testResults } = JSON.parse(stdout.slice(start)) as TestReport;
  if (numTotalTests === 0) throw new Error(`"${name}": no test ran:\n${stderr.slice(0, 2000)}`);
  if (numFailedTests === 0) return null;
  const failed = testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter((one) => one.status === 'failed'),
  );
  const quick = failed.find(({ tags }) => tags.length === 0);
  const isQuick = quick !== undefined;
  return { by: isQuick ? 'a quick test' : 'a slow test', found: (quick ?? failed[0])?.title ?? '', isQuick };
}

interface TestReport {
  readonly numTotalTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly title: string; readonly tags: string[] }[];
  }[];
}

/** Looks for the bug in a damaged copy. @returns null if it is not found */
function hunt(sabotage: Sabotage): Caught | null {
  const directory = damagedCopy(sabotage);
  try {
    const { test } = sabotage;
    return test === undefined ? runSimulator(sabotage, directory) : runTest(sabotage, directory, test);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

let [escaped, quick] = [0, 0];
const [shard = 1, shards = 1] = values.shard.split('/').map(Number);
const named = SABOTAGES.filter(({ name }) => values.only === undefined || name.includes(values.only));
const chosen = named.filter((_one, at) => at % shards === shard - 1);
for (const sabotage of chosen) {
  let by = 'ESCAPED';
  let found = '';
  try {
    const caught = hunt(sabotage);
    if (caught !== null) ({ by, found } = caught);
    if (caught?.isQuick) quick++;
  } catch (error) {
    by = 'BROKEN';
    found = String(error);
  }
  if (by === 'ESCAPED' || by === 'BROKEN') escaped++;
  process.stdout.write(`${by.padStart(12)}  ${sabotage.name.padEnd(66)} ${found.slice(0, 90)}\n`);
}
process.stdout.write(
  `${chosen.length - escaped} of ${chosen.length} deliberate bugs found, ${quick} of them by npm test\n`,
);
process.exitCode = escaped > 0 ? 1 : 0;
