#!/usr/bin/env node

import { Console } from 'node:console';
import { Writable } from 'node:stream';
import { isatty } from 'node:tty';
import { systemClock } from '@catchword/base/clock';
import { isForcedExitRequired } from '@catchword/base/forced-exit';
import { refuseDebugger, STOP_SIGNALS, waitForSlowAddresses } from '@catchword/base/lifecycle';
import { run } from './cli/program.ts';

refuseDebugger(process.env.NODE_OPTIONS);
waitForSlowAddresses();
// Some drivers print what a store sent; stdout is data, and a log has no text that was not checked.
globalThis.console = new Console(new Writable({ write: (_chunk, _encoding, done) => done() }));
const hasTerminal = (): boolean => [0, 1, 2].some((descriptor) => isatty(descriptor));
const hadTerminal = hasTerminal();
const stopping = new AbortController();
let signalCode: number | undefined;
for (const name of STOP_SIGNALS) {
  process.on(name, (_: string, number: number) => {
    // The second signal: stop at once; SQLite's last commit is complete. A terminal that closes sends SIGHUP twice.
    if (signalCode !== undefined && name !== 'SIGHUP') process.kill(process.pid, 'SIGKILL');
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
// If the terminal is gone, Node.js aborts when it ends, because it cannot reset the terminal's mode.
if (signalCode === 129 && hadTerminal && !hasTerminal()) process.kill(process.pid, 'SIGKILL');
if (isForcedExitRequired()) process.exit();
