import fs from 'node:fs';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { CommandContext } from '../../src/commands/shared/context.ts';
import { createProgram, reportError } from '../../src/program.ts';
import type { Ended } from './cli.ts';

export type Printed = Omit<Ended, 'signal'>;

/** Redirects log lines, which are written to the file descriptor of stderr. @returns a function that undoes this */
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

/** Collects the output of a command and its exit code, which it sets or `work` returns. */
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

/** Runs a command in this process, with any clock. @throws the command's error */
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
 * Runs a command as `run` of cli.ts does, but in this process, because starting one takes most of a second. For
 * commands that do not read stdin or `.env` and are not stopped by a signal. Only one at a time, because it changes the
 * working directory of this process.
 */
export async function runHere(
  args: readonly string[],
  environment: Record<string, string>,
  cwd: string,
): Promise<Printed> {
  if (isRunning) throw new Error('another command is running in this process');
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

/** The system clock, `aheadMs` ahead. */
export function shiftedClock(aheadMs: number): Clock {
  return { ...systemClock, now: () => Date.now() + aheadMs };
}
