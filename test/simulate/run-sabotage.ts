import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SABOTAGES, type Sabotage } from './sabotage.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MAX_SEEDS = 1000;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seeds: { type: 'string', default: String(MAX_SEEDS) },
    /** Only histories in this world; its name, or a part of it. */
    world: { type: 'string', default: '' },
  },
});

/** Copies the program and inserts the bug. */
function damagedCopy({ name, edits }: Sabotage): string {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-sabotage-'));
  for (const part of ['src', 'test', 'drizzle', 'package.json', 'tsconfig.json']) {
    cpSync(join(ROOT, part), join(directory, part), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
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

/** Runs the simulator on the damaged copy. @returns the seed that found a violation; null if none did */
function hunt(sabotage: Sabotage): { readonly seeds: number; readonly found: string } | null {
  const directory = damagedCopy(sabotage);
  try {
    const args = [
      '--import',
      'tsx',
      'test/simulate/main.ts',
      '--until-found',
      '--seeds',
      `1..${values.seeds}`,
      '--world',
      values.world,
    ];
    const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: directory, encoding: 'utf8' });
    const [, seed, found = ''] = /^seed (\d+): (.*)/m.exec(stdout) ?? [];
    if (seed !== undefined) return { seeds: Number(seed), found: found.slice(0, 90) };
    if (!/histories in/.test(stdout)) throw new Error(`"${sabotage.name}" does not run:\n${stderr.slice(0, 2000)}`);
    return null;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

let escaped = 0;
const chosen = SABOTAGES.filter(({ name }) => values.only === undefined || name.includes(values.only));
for (const sabotage of chosen) {
  const caught = hunt(sabotage);
  if (caught === null) escaped++;
  const seeds = caught === null ? 'ESCAPED' : String(caught.seeds);
  process.stdout.write(`${seeds.padStart(7)}  ${sabotage.name.padEnd(54)} ${caught?.found ?? ''}\n`);
}
process.stdout.write(`${chosen.length - escaped} of ${chosen.length} deliberate bugs found\n`);
process.exitCode = escaped > 0 ? 1 : 0;
