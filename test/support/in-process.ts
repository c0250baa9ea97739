import fs from 'node:fs';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type Clock, systemClock } from '@catchword/base/clock';
import type { Command } from 'commander';
import type { CommandContext, ProcessContext } from '../../src/cli/commands/shared/command-context.ts';
import { run } from '../../src/cli/program.ts';
import { hastyClock } from '../../src/contract/harness.ts';
import type { Ended } from './cli.ts';

export type Printed = Omit<Ended, 'signal'>;

/** A context in which nothing is read, printed or stopped, unless `parts` say otherwise. */
export function contextWith(parts: Partial<CommandContext>): CommandContext {
  return {
    stdin: () => Readable.from([]),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    environment: {},
    fromDotEnv: new Set(),
    again: async () => parts.environment ?? {},
    signal: new AbortController().signal,
    clock: systemClock,
    wrote: () => {},
    setExitCode: () => {},
    ...parts,
  };
}

/** Sends log lines, which go to the descriptor of stderr past every stream, to `stderr`. @returns what undoes it */
function redirectLog(stderr: PassThrough): () => void {
  const write = fs.writeSync;
  fs.writeSync = ((fd: number, data: string | Buffer, ...more: never[]) => {
    if (fd !== 2) return write(fd, data as string, ...more);
    stderr.write(data);
    return Buffer.byteLength(data);
  }) as typeof fs.writeSync;
  return () => {
    fs.writeSync = write;
  };
}

/** Collects what `work` prints; `work` returns the exit code. */
async function collectOutput(
  work: (streams: Pick<ProcessContext, 'stdout' | 'stderr'>) => Promise<number>,
): Promise<Printed> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const texts = Promise.all([text(stdout), text(stderr)]);
  const restoreLog = redirectLog(stderr);
  let code: number;
  try {
    code = await work({ stdout, stderr });
  } finally {
    restoreLog();
    stdout.end();
    stderr.end();
  }
  const [out, err] = await texts;
  return { stdout: out, stderr: err, code };
}

/** Runs a command in this process. @throws what the command throws */
export async function runCommand(
  make: (context: CommandContext) => Command,
  args: readonly string[],
  environment: Record<string, string>,
  clock: Clock = systemClock,
): Promise<Printed> {
  return await collectOutput(async (streams) => {
    let code = 0;
    const setExitCode = (given: number): void => {
      code = given;
    };
    await make(contextWith({ ...streams, environment, clock, setExitCode })).parseAsync([...args], { from: 'user' });
    return code;
  });
}

let isRunning = false;

interface HereOptions {
  readonly stdin?: string | Buffer;
  /** Instead of a stream that collects what is printed. */
  readonly stdout?: NodeJS.WritableStream;
  readonly signal?: AbortSignal;
  /** Default: real time, with short pauses made shorter. */
  readonly clock?: Clock;
}

/**
 * Runs a command line in this process, because a process of its own takes most of a second to start. One at a time: the
 * working directory is that of this process.
 */
export async function runHere(
  args: readonly string[],
  environment: Record<string, string>,
  cwd: string,
  { stdin, stdout, signal = new AbortController().signal, clock = hastyClock }: HereOptions = {},
): Promise<Printed> {
  if (isRunning) throw new Error('another command is running in this process');
  isRunning = true;
  const before = process.cwd();
  process.chdir(cwd);
  try {
    return await collectOutput(async (streams) => {
      const openStdin = (): Readable => Readable.from(stdin === undefined ? [] : [Buffer.from(stdin)]);
      const host = {
        ...streams,
        ...(stdout !== undefined && { stdout }),
        stdin: openStdin,
        environment,
        signal,
        clock,
      };
      return (await run(args, host)) ?? (signal.aborted ? 130 : 0);
    });
  } finally {
    process.chdir(before);
    isRunning = false;
  }
}

/** The system clock, `aheadMs` ahead. */
export function shiftedClock(aheadMs: number): Clock {
  return { ...systemClock, now: () => Date.now() + aheadMs };
}
