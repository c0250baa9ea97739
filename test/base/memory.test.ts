import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { CLI } from '../support/cli.ts';
import { place } from '../support/place.ts';

/** Runs a program, and prints the most memory that it held at once, in kB. */
const MEASURE = `
import resource, subprocess, sys
subprocess.check_call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
`;

/** In MB, as measured on Node.js 20, 22 and 24, with a third to spare. */
const LIMITS = { sync: 380, status: 135, changes: 260 };

it('commands load 50,000 products, and read the mirror, in little memory on every version of Node.js', {
  tags: ['slow'],
}, async () => {
  const { directory, settings } = await place({ items: 50_000 });
  const measured: Record<string, number> = {};
  for (const verb of Object.keys(LIMITS)) {
    const args = ['-c', MEASURE, process.execPath, CLI, verb];
    const { stdout } = await promisify(execFile)('python3', args, {
      cwd: directory,
      env: { ...process.env, ...settings },
    });
    measured[verb] = Math.round(Number(stdout) / 1024);
  }
  process.stdout.write(`memory on Node.js ${process.version}, MB: ${JSON.stringify(measured)}\n`);
  for (const [verb, limit] of Object.entries(LIMITS)) expect(measured[verb], verb).toBeLessThan(limit);
});
