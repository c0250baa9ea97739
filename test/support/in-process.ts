import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { CommandContext } from '../../src/commands/context.ts';
import { createProgram, reportError } from '../../src/program.ts';

export interface Printed {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** What a command prints here, and its exit code: as it sets it, or as `work` returns it. */
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
  try {
    code = (await work(context)) ?? code;
  } finally {
    stdout.end();
    stderr.end();
  }
  const [out, err] = await texts;
  return { stdout: out, stderr: err, code };
}

/** Runs a command without a process of its own, so that its clock can be chosen. @throws what the command throws */
export async function runHere(
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

/**
 * As `run`, without a process of its own, which takes most of a second to start. For what neither reads stdin nor is
 * stopped by a signal; log lines are not among what is printed, and relative paths are those of this process.
 */
export async function catchword(args: readonly string[], environment: Record<string, string>): Promise<Printed> {
  return await printed(environment, systemClock, async (context) => {
    try {
      await createProgram(context).parseAsync([...args], { from: 'user' });
      return undefined;
    } catch (error) {
      return reportError(context, error);
    }
  });
}

/** The system's clock, `aheadMs` ahead. */
export function shiftedClock(aheadMs: number): Clock {
  return { ...systemClock, now: () => Date.now() + aheadMs };
}
