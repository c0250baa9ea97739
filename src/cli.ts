#!/usr/bin/env node

import { Console } from 'node:console';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Writable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { systemClock } from './clock.ts';
import { isForcedExitRequired } from './forced-exit.ts';
import { run } from './program.ts';

// Node.js keeps its own modules compiled for the default flags of V8. With other flags, loading them takes three times as
// long, and starting a thread 50 ms instead of 20. So flags are set late, or for a short time.

// By default V8 lets a small heap grow to several times its use before it collects garbage. Three times its use is as fast.
// Half as much again is slower: the buffers of pages count as growth, so that a load collects every 50 ms.
setTimeout(() => setFlagsFromString('--heap-growing-percent=200'), 1_000).unref();

const isNode20 = process.versions.node.startsWith('20.');

// How much code a function runs before V8 optimizes it, in bytes. Nine times the default at first: a load runs much code a
// few thousand times, and optimizing that in threads of its own took an eighth of the processor's time. The default once the
// process has run for a while: feeding webhooks takes a tenth less time. Node.js's own modules load as fast with it. Later
// versions have a faster compiler for that, and not this flag.
if (isNode20) {
  setFlagsFromString('--interrupt-budget=600000');
  setTimeout(() => setFlagsFromString('--interrupt-budget=67584'), 2_000).unref();
}

// By default V8 optimizes undici's HTTP parser, which is in WebAssembly, after one response, and the process cannot end
// before that is done: 0.05 s. A hundred times later is early enough for a load. The parser keeps the budget with which it
// is compiled, at the first connection. The defaults are those of Node.js 20 and of later versions.
const BUDGET = isNode20 ? 1_800_000 : 13_000_000;

function delayOptimization(): void {
  setFlagsFromString(`--wasm-tiering-budget=${100 * BUDGET}`);
}

subscribe('undici:client:beforeConnect', delayOptimization);
subscribe('undici:client:connected', function restoreBudget() {
  setFlagsFromString(`--wasm-tiering-budget=${BUDGET}`);
  unsubscribe('undici:client:beforeConnect', delayOptimization);
  unsubscribe('undici:client:connected', restoreBudget);
});

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
