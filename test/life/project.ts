import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Ended, startProcess } from '../support/cli.ts';
import { installPackage } from '../support/package.ts';
import { createMachineClock, type MachineClock } from './clock.ts';

/** A new project in which the packed package is installed, on a machine with its own clock. */
export interface Project {
  readonly directory: string;
  /** The mirror, at its default path. */
  readonly db: string;
  readonly clock: MachineClock;
  /** Writes `.env`: the earlier settings with these changes. */
  configure(settings: Readonly<Record<string, string>>): void;
  /** Runs an installed command, such as `catchword`, in the project's directory. */
  run(command: string, ...args: readonly string[]): Promise<Ended>;
  remove(): void;
}

export async function createProject(): Promise<Project> {
  // Short, because the path of pm2's socket is limited.
  const directory = mkdtempSync(join(tmpdir(), 'catchword-life-'));
  await installPackage(directory);
  const clock = createMachineClock(directory, 'machine');
  const settings = new Map<string, string>();
  return {
    directory,
    db: join(directory, 'data/catalog.db'),
    clock,
    configure: (changes) => {
      for (const [name, value] of Object.entries(changes)) settings.set(name, value);
      // A value that contains # must be quoted.
      const lines = [...settings].map(([name, value]) => `${name}="${value}"\n`);
      writeFileSync(join(directory, '.env'), lines.join(''), { mode: 0o600 });
    },
    run: async (command, ...args) => {
      const program = [join(directory, 'node_modules/.bin', command), ...args];
      const running = startProcess(program, clock.env, directory);
      running.child.stdin?.end();
      return await running.ended;
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
