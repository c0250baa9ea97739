import fs from 'node:fs';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { CommandContext } from '../../src/commands/shared/context.ts';
import { createProgram, reportError } from '../../src/program.ts';
import type { Ended } from './cli.ts';

export type Printed = Omit<Ended, 'signal'>;

/** Log lines go to the descriptor of stderr, past every stream. @returns what gives it back */
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

/** What a command prints, and its exit code: as it sets it, or as `work` returns it. */
async function printed(
  environment: Record<string, string>,
  clock: Clock,
  work: (context: CommandContext) => Promise<number | undefined>,
): Promise<Printed> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const texts = Promise.all([text(stdout), text(stderr)]);
  let code = 0;
  const context: CommandContext = {
    stdout,
    stderr,
    environment,
    signal: new AbortController().signal,
    clock,
    wrote: () => {},
    setExitCode: (given) => {
      code = given;
    },
  };
  const restoreLog = redirectLog(stderr);
  try {
    code = (await work(context)) ?? code;
  } finally {
    restoreLog();
    stdout.end();
    stderr.end();
  }
  const [out, err] = await texts;
  return { stdout: out, stderr: err, code };
}

/** Runs a command without a process of its own, so that its clock can be chosen. @throws what the command throws */
export async function runCommand(
  make: (context: CommandContext) => Command,
  args: readonly string[],
  environment: Record<string, string>,
  clock: Clock = systemClock,
): Promise<Printed> {
  return await printed(environment, clock, async (context) => {
    await make(context).parseAsync([...args], { from: 'user' });
    return undefined;
  });
}

let isRunning = false;

/**
 * As `run` of cli.ts, without a process of its own, which takes most of a second to start: for what neither reads stdin or
 * `.env` nor is stopped by a signal. One at a time, because the working directory is that of this process.
 */
export async function runHere(
  args: readonly string[],
  environment: Record<string, string>,
  cwd: string,
): Promise<Printed> {
  if (isRunning) throw new Error('another command runs here');
  isRunning = true;
  const before = process.cwd();
  process.chdir(cwd);
  try {
    return await printed(environment, systemClock, async (context) => {
      try {
        await createProgram(context).parseAsync([...args], { from: 'user' });
        return undefined;
      } catch (error) {
        return reportError(context, error);
      }
    });
  } finally {
    process.chdir(before);
    isRunning = false;
  }
}

/** The system's clock, `aheadMs` ahead. */
export function shiftedClock(aheadMs: number): Clock {
  return { ...systemClock, now: () => Date.now() + aheadMs };
}
