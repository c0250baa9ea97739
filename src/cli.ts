#!/usr/bin/env node

import { Console } from 'node:console';
import { Writable } from 'node:stream';
import { systemClock } from './base/clock.ts';
import { isForcedExitRequired } from './base/forced-exit.ts';
import { run } from './cli/program.ts';

// Some drivers print what a store sent; stdout is data, and a log has no text that was not checked.
globalThis.console = new Console(new Writable({ write: (_chunk, _encoding, done) => done() }));
const stopping = new AbortController();
let signalCode: number | undefined;
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, (_: string, number: number) => {
    // The second signal: stop at once. SQLite's last commit is complete in any case.
    if (signalCode !== undefined) process.kill(process.pid, 'SIGKILL');
    signalCode ??= 128 + number;
    stopping.abort();
  });
}
const exitCode = await run(process.argv.slice(2), {
  stdin: () => process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
  signal: stopping.signal,
  clock: systemClock,
  apart: true,
});
process.exitCode = exitCode ?? signalCode ?? 0;
if (isForcedExitRequired()) process.exit();
