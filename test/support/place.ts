import { join } from 'node:path';
import type { SandboxOptions } from '@catchword/sandbox/options';
import { type Sandbox, startSandbox } from '@catchword/sandbox/sandbox-server';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { onTestFinished } from 'vitest';
import { load } from './load.ts';
import { settingsFor } from './mirror.ts';

/** A sandbox, and where its mirror is or will be. */
export interface Place {
  readonly sandbox: Sandbox;
  readonly directory: string;
  readonly db: string;
  readonly settings: Record<string, string>;
}

/** Starts a sandbox, and names the path of its future mirror. */
export async function place(options: Partial<SandboxOptions>, more: Record<string, string> = {}): Promise<Place> {
  const sandbox = await startSandbox(options);
  onTestFinished(() => sandbox.stop());
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  return { sandbox, directory, db, settings: settingsFor(sandbox.url, db, more) };
}

/** Starts a sandbox, and fills a mirror with one full run. */
export async function filled(options: Partial<SandboxOptions>, more?: Record<string, string>): Promise<Place> {
  const made = await place(options, more);
  await load(made.settings, 'full');
  return made;
}
