import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('shim.c', import.meta.url));

/** The C compiler; undefined if none is installed. */
const compiler = ['cc', 'gcc'].find((name) => spawnSync(name, ['--version']).status === 0);

function isPossible(): boolean {
  const missing = process.platform === 'linux' ? 'a C compiler (cc or gcc)' : 'Linux';
  if (process.platform === 'linux' && compiler !== undefined) return true;
  if (process.env.CI !== undefined) throw new Error(`${missing}: needed on CI (see .ci/run)`);
  process.stderr.write(`${missing}: not available, so power failures and faults of the disk are not tested\n`);
  return false;
}

/** Whether shim.c can be used here. In CI it must be possible. */
export const shimAvailable = isPossible();

let built: string | undefined;

/** Compiles shim.c, once in a process. @returns the path of the library */
function shimLibrary(): string {
  if (built !== undefined) return built;
  const directory = mkdtempSync(join(tmpdir(), 'catchword-shim-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const library = join(directory, 'shim.so');
  execFileSync(compiler ?? 'cc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE, '-ldl', '-lpthread']);
  built = library;
  return library;
}

/** The calls that a fault can happen at; `any` is all of them. */
export type CallKind = 'open' | 'write' | 'truncate' | 'sync' | 'rename' | 'unlink' | 'mkdir' | 'chmod' | 'any';

/** What shim.c does with a program. Its header explains every part. */
export interface ShimOptions {
  /** The watched directory: absolute, without links. */
  readonly directory: string;
  /** The file that every call is recorded in. */
  readonly log?: string;
  readonly fault?: {
    readonly kind: CallKind;
    /** The Nth call of this kind in the process, from 1 on. */
    readonly at: number;
    readonly what: 'EIO' | 'ENOSPC' | 'kill-before' | 'kill-after';
    /** Counts only calls on paths that end with this. */
    readonly file?: string;
    /** A file that exists afterwards if the fault happened: kind, number and path. */
    readonly hit: string;
  };
}

/** The variables that put shim.c between a program and the disk. */
export function shimEnvironment({ directory, log, fault }: ShimOptions): Record<string, string> {
  return {
    LD_PRELOAD: shimLibrary(),
    FAULTS_DIR: directory,
    ...(log === undefined ? {} : { FAULTS_LOG: log }),
    ...(fault === undefined
      ? {}
      : {
          FAULTS_AT: `${fault.kind}:${fault.at}`,
          FAULTS_DO: fault.what,
          FAULTS_HIT: fault.hit,
          ...(fault.file === undefined ? {} : { FAULTS_FILE: fault.file }),
        }),
  };
}
