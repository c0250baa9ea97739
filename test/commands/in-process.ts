import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { CommandContext } from '../../src/commands/context.ts';

export interface Printed {
  readonly stdout: string;
  readonly stderr: string;
  /** As the command set it; 0 where it did not. */
  readonly code: number;
}

/** Runs a command without a process of its own, so that its clock can be chosen. @throws what the command throws */
export async function runHere(
  make: (context: CommandContext) => Command,
  args: readonly string[],
  environment: Record<string, string>,
  clock: Clock = systemClock,
): Promise<Printed> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const printed = Promise.all([text(stdout), text(stderr)]);
  let code = 0;
  const command = make({
    stdout,
    stderr,
    environment,
    signal: new AbortController().signal,
    clock,
    wrote: () => {},
    setExitCode: (given) => {
      code = given;
    },
  });
  try {
    await command.parseAsync([...args], { from: 'user' });
  } finally {
    stdout.end();
    stderr.end();
  }
  const [out, err] = await printed;
  return { stdout: out, stderr: err, code };
}

/** The system's clock, `aheadMs` ahead. */
export function shiftedClock(aheadMs: number): Clock {
  return { ...systemClock, now: () => Date.now() + aheadMs };
}
