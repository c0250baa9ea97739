#!/usr/bin/env node

import { Console } from 'node:console';
import { constants } from 'node:os';
import { Writable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { systemClock } from './clock.ts';
import { isForcedExitRequired } from './forced-exit.ts';
import { run } from './program.ts';

// By default V8 lets a heap grow to several times its use before it collects garbage. Half as much again was measured to
// be no slower, and needs 100 MB less.
setFlagsFromString('--heap-growing-percent=50');
setFlagsFromString('--max-semi-space-size=8');
// By default V8 optimizes undici's HTTP parser, which is in WebAssembly, after one response, and the process cannot end
// before that is done: 0.1 s. A hundred times later is early enough for a load.
setFlagsFromString('--wasm-tiering-budget=180000000');
// Some drivers print what a store sent; stdout is data, and a log has no text that was not checked.
globalThis.console = new Console(new Writable({ write: (_chunk, _encoding, done) => done() }));
const stopping = new AbortController();
let signalCode: number | undefined;
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    // The second signal: stop at once. SQLite's last commit is complete in any case.
    if (signalCode !== undefined) process.kill(process.pid, 'SIGKILL');
    signalCode ??= 128 + constants.signals[name];
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
