// @module-tag slow
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { listen } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { until } from '../../src/contract/harness.ts';
import { runProcess } from '../support/cli.ts';
import { ADDRESSES, type Protocol } from './addresses.ts';
import { fuzzSinks } from './fuzz.ts';
import { NONSENSE } from './mangled.ts';
import { startWatchedRelay } from './watched-relay.ts';

/** A server that says one thing at once, and again to whatever it gets. */
async function saying(word: Buffer): Promise<number> {
  return await listen(
    createServer((socket: Socket) => {
      socket.on('error', () => {}).on('data', () => socket.write(word));
      socket.write(word);
    }),
  );
}

it('a store that speaks nonsense fails alone', async () => {
  const sinks: Record<string, string> = {};
  for (const [protocol, words] of Object.entries(NONSENSE) as [Protocol, Buffer[]][]) {
    for (const [index, word] of words.entries()) {
      sinks[`${protocol}${index}`] = ADDRESSES[protocol](await saying(word));
    }
  }
  const watched = startWatchedRelay(sinks);
  await watched.relay.shows('sink is open');
  await watched.healthyGoesOn();
  // PostgreSQL asks for GSSAPI.
  expect(await watched.failureOf('postgres0')).toContain('Unknown authenticationOk message type 7');
  for (let round = 0; round < 3; round++) {
    watched.change();
    watched.hurry();
    await watched.healthyGoesOn();
  }
  const { code, stdout } = await watched.stop();
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
});

it('answers of real stores may be mangled', async () => {
  const { connections } = await fuzzSinks({ ms: 5_000, seed: 1 });
  expect(Math.min(...Object.values(connections))).toBeGreaterThan(0);
});

/** What a module may do wrong, each in `deliver`. */
const FAULTS = {
  timer: "setTimeout(() => { throw new Error('late') }, 1); return new Promise(() => {});",
  tick: "process.nextTick(() => { throw new Error('late') }); return new Promise(() => {});",
  rejection: "Promise.reject(new Error('late')); return new Promise(() => {});",
  emitter: "new EventEmitter().emit('error', new Error('late'));",
  nothing: 'throw Object.create(null);',
  number: 'throw 7;',
  failure: "throw Object.assign(new Error('late'), { name: 'SinkError', failure: 7, retryAfterMs: '9' });",
  message: 'throw Object.assign(new Error(), { message: { toString: 1 } });',
};

it('a module that throws anything, anywhere, fails alone', async () => {
  const directory = temporaryDirectory();
  const sinks: Record<string, string> = {};
  for (const [name, fault] of Object.entries(FAULTS)) {
    const file = join(directory, `${name}.mjs`);
    writeFileSync(
      file,
      `import { EventEmitter } from 'node:events';
      setTimeout(() => { throw new Error('while it is loaded') }, 1);
      export const createSink = () => ({ batch: { events: 10, chars: 1000 }, open: async () => null,
        deliver: () => { ${fault} }, close: async () => {}, check: async () => '' });`,
    );
    sinks[name] = `module:${file}`;
  }
  const watched = startWatchedRelay(sinks);
  for (const name of Object.keys(FAULTS)) expect(await watched.failureOf(name)).not.toBe('');
  // At first it fails by what it did while it was loaded.
  async function nextFailure(): Promise<string> {
    watched.hurry();
    return await watched.failureOf('timer');
  }
  await expect.poll(nextFailure, { interval: 200 }).toBe('its driver failed: late');
  watched.change();
  await watched.healthyGoesOn();
  expect((await watched.stop()).code).toBe(0);
});

it('a module that never answers fails alone', async () => {
  const directory = temporaryDirectory();
  const never = 'new Promise(() => {})';
  const modules = {
    create: `() => ${never}`,
    close: `() => ({ batch: { events: 10, chars: 1000 }, open: async () => null, deliver: async () => {},
      check: async () => '', close: () => ${never} })`,
    late: `() => new Promise((resolve) => setTimeout(resolve, 10_500, {
      close: async () => (await import('node:fs')).writeFileSync(${JSON.stringify(join(directory, 'closed'))}, '') }))`,
  };
  const sinks: Record<string, string> = {};
  for (const [name, createSink] of Object.entries(modules)) {
    const file = join(directory, `${name}.mjs`);
    writeFileSync(file, `export const createSink = ${createSink};`);
    sinks[name] = `module:${file}`;
  }
  const watched = startWatchedRelay(sinks);
  await watched.healthyGoesOn();
  expect(await watched.failureOf('create')).toContain('no answer within 10 s');
  await until('what was made too late is closed', () => existsSync(join(directory, 'closed')));
  expect((await watched.stop()).code).toBe(0);
});

it('an error of catchword itself ends the process', async () => {
  const directory = temporaryDirectory();
  const script = join(directory, 'main.mjs');
  writeFileSync(
    script,
    `import { createErrorBoundary } from ${JSON.stringify(join(process.cwd(), 'dist/relay/error-boundary.js'))};
    const { confined } = createErrorBoundary(() => console.log('failed'), (text) => text);
    await confined(() => { setTimeout(() => { throw new Error('inside') }, 1); return new Promise(() => {}); })
      .catch((error) => console.log(error.message));
    setTimeout(() => { throw new Error('outside') }, 1);
    setTimeout(() => console.log('goes on'), 500);`,
  );
  const { code, stdout, stderr } = await runProcess([process.execPath, script], {}, directory);
  expect({ code, stdout }).toEqual({ code: 1, stdout: 'failed\nits driver failed: inside\n' });
  expect(stderr).toContain('Error: outside');
});

it('a store that floods a sink does not fill the memory', async () => {
  const flood = Buffer.alloc(2 ** 20);
  // The head of a row of two gigabytes.
  const head = Buffer.from([68, 0x7f, 0xff, 0xff, 0xff]);
  const port = await listen(
    createServer((socket: Socket) => {
      const more = (): void => {
        if (!socket.destroyed) socket.write(flood, more);
      };
      socket.on('error', () => {}).once('data', () => socket.write(head, more));
    }),
  );
  const watched = startWatchedRelay({ flood: ADDRESSES.postgres(port) });
  let peakMb = 0;
  const watch = setInterval(() => {
    peakMb = Math.max(peakMb, watched.memoryMb());
  }, 50);
  expect(await watched.failureOf('flood')).toContain('the store sent more than 128 MB');
  clearInterval(watch);
  expect(peakMb).toBeLessThan(1_200);
  await watched.stop();
});
