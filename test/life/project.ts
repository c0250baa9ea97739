import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Ended, runProcess } from '../support/cli.ts';
import { installPackage } from '../support/package.ts';
import { createMachineClock } from './clock.ts';

export type Project = ReturnType<typeof createProject>;

/** A new project in which the packed package is installed, on a machine with its own clock. */
export function createProject() {
  // Short, because the path of pm2's socket is limited.
  const directory = mkdtempSync(join(tmpdir(), 'catchword-life-'));
  installPackage(directory);
  const clock = createMachineClock(directory, 'machine');
  const settings = new Map<string, string>();
  return {
    directory,
    /** The mirror, at its default path. */
    db: join(directory, 'data/catalog.db'),
    clock,
    /** Writes `.env`: the earlier settings with these changes. */
    configure: (changes: Readonly<Record<string, string>>): void => {
      for (const [name, value] of Object.entries(changes)) settings.set(name, value);
      // A value that contains # must be quoted.
      const lines = [...settings].map(([name, value]) => `${name}="${value}"\n`);
      writeFileSync(join(directory, '.env'), lines.join(''), { mode: 0o600 });
    },
    /** Runs an installed command, such as `catchword`, in the project's directory. */
    run: (command: string, ...args: readonly string[]): Promise<Ended> =>
      runProcess([join(directory, 'node_modules/.bin', command), ...args], clock.env, directory),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
