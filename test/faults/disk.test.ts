// @module-tag slow
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { type Sandbox, startSandbox } from '@catchword/sandbox/sandbox-server';
import { query } from '@catchword/testing/sqlite';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { type Ended, start } from '../support/cli.ts';
import { load } from '../support/load.ts';
import { truthOf } from '../support/mirror.ts';
import { checkCrashed, finish } from './check.ts';
import { createDisk } from './disk.ts';
import { readLog } from './log.ts';
import { type CallKind, shimAvailable, shimEnvironment } from './shim.ts';
import { settingsIn } from './workload.ts';

/** `FAULTS=1.. npx vitest run test/faults/disk.test.ts` tries every call, or from one to another: `FAULTS=1..100`. */
const [, FIRST = '1', LAST = ''] = /^(\d+)\.\.(\d*)$/.exec(process.env.FAULTS ?? '') ?? [];
const FAULTS = ['EIO', 'ENOSPC'] as const;

interface Work {
  /** Without FAULTS, every so manieth call fails: a prime, so that it meets all parts of a repeated sequence. */
  readonly step: number;
  /** Prepares the directory. */
  readonly prepare: (root: string, sandbox: Sandbox) => Promise<void>;
  /** Does the work in a process with the fault. */
  readonly run: (env: Record<string, string>, root: string) => Promise<Ended>;
}

interface Case {
  readonly name: string;
  readonly work: Work;
  readonly what: (typeof FAULTS)[number];
  readonly kind: CallKind;
  readonly file: string;
  readonly step: number;
}

async function loaded(root: string, sandbox: Sandbox): Promise<void> {
  await load(settingsIn(root, sandbox.url), 'full');
}

function caughtUp(db: string): boolean {
  try {
    const sql = 'SELECT cursor, (SELECT max(seq) FROM changes) AS newest FROM sinks';
    const [sink] = query<{ cursor: number; newest: number }>(db, sql);
    return sink !== undefined && sink.cursor === sink.newest;
  } catch {
    return false;
  }
}

const WORKS: Readonly<Record<string, Work>> = {
  'a load': {
    step: 73,
    prepare: async () => {},
    run: (env, root) => start(['sync', '--full'], env, root).ended,
  },
  'a sweep': {
    step: 53,
    prepare: async (root, sandbox) => {
      await loaded(root, sandbox);
      sandbox.catalog.mutate({ create: 5, update: 10, remove: 20, seed: 3 });
    },
    run: (env, root) => start(['sync', '--full'], env, root).ended,
  },
  'a relay': {
    step: 37,
    prepare: loaded,
    run: async (env, root) => {
      const relay = start(['relay'], env, root);
      let hasEnded = false;
      void relay.ended.then(() => (hasEnded = true));
      const giveUpAt = Date.now() + 60_000;
      while (!hasEnded && !caughtUp(env.CATCHWORD_DB ?? '') && Date.now() < giveUpAt) await delay(50);
      return await relay.stop();
    },
  },
};

const CASES: readonly Case[] = [
  ...Object.entries(WORKS).flatMap(([name, work]) =>
    FAULTS.map((what) => {
      const step = process.env.FAULTS === undefined ? work.step : 1;
      return { name, work, what, kind: 'any', file: '', step } as const;
    }),
  ),
  // SQLite opens a file for reading only if it cannot be opened otherwise.
  { name: 'a load', work: WORKS['a load'] as Work, what: 'EIO', kind: 'open', file: '/catalog.db', step: 1 },
  // What a failed sync was to write may be lost, although it can be read.
  { name: 'a relay', work: WORKS['a relay'] as Work, what: 'EIO', kind: 'sync', file: '/changes.jsonl', step: 1 },
  // A directory that exists when the sink is opened again may not have its name on the disk.
  { name: 'a relay', work: WORKS['a relay'] as Work, what: 'EIO', kind: 'sync', file: '/watched', step: 1 },
];

/** What a process may print when the disk fails: one error with a hint, and nothing else. */
const ONE_ERROR = /^error [^\n]+ \[MIRROR_WRITE_FAILED\]\nhint {2}[^\n]+\n$/;

/** Checks that the sink's file has what it confirmed, also if the power fails now: what a failed sync dropped is lost. */
function checkWithoutPower(root: string, log: string, seed: number): void {
  const disk = createDisk(root);
  for (const call of readLog(log)) disk.step(call);
  const random = createRandom(seed);
  const crashed = `${root}-crashed`;
  for (let draw = 0; draw < 6; draw++) {
    mkdirSync(crashed);
    disk.crash(crashed, random);
    // The log does not have the mirror's first part.
    rmSync(join(crashed, 'data'), { recursive: true, force: true });
    cpSync(join(root, 'data'), join(crashed, 'data'), { recursive: true });
    checkCrashed(crashed, { known: null, runs: new Set() });
    rmSync(crashed, { recursive: true });
  }
}

it.skipIf(!shimAvailable).each(CASES)(
  'a disk that fails once with $what at $kind, during $name, harms nothing',
  { tags: ['stores'], timeout: 3_600_000 },
  async ({ name, work, what, kind, file, step }) => {
    const directory = realpathSync(temporaryDirectory());
    const [root, before, hit, log] = ['watched', 'before', 'hit', 'log'].map((part) => join(directory, part)) as [
      string,
      string,
      string,
      string,
    ];
    const sandbox = await startSandbox({ items: 60, withdrawnForMs: 0 });
    onTestFinished(() => sandbox.stop());
    mkdirSync(root);
    await work.prepare(root, sandbox);
    cpSync(root, before, { recursive: true });
    const truth = await truthOf(sandbox.url);
    const db = join(root, 'data', 'catalog.db');
    const ends = new Map<string, number>();
    const broken: string[] = [];
    let at = Number(FIRST);
    for (; at <= (LAST === '' ? Number.POSITIVE_INFINITY : Number(LAST)); at += step) {
      for (const path of [root, `${root}-crashed`, hit, log]) rmSync(path, { recursive: true, force: true });
      cpSync(before, root, { recursive: true });
      const fault = { kind, at, what, hit, file };
      const settings = { ...settingsIn(root, sandbox.url), LOG_LEVEL: name === 'a relay' ? 'fatal' : 'silent' };
      const env = { ...settings, ...shimEnvironment({ directory: root, log, fault }) };
      const { code, signal, stderr } = await work.run(env, root);
      if (!existsSync(hit)) break;
      const call = readFileSync(hit, 'utf8').trim();
      const errorCode = /\[(\w+)\]/.exec(stderr)?.[1] ?? /"code":"(\w+)"/.exec(stderr)?.[1] ?? '';
      const how = `${code ?? signal} ${errorCode}`.trim();
      ends.set(how, (ends.get(how) ?? 0) + 1);
      try {
        if (code !== 0 && code !== 1) throw new Error(`ended with ${how}: ${stderr}`);
        if (name !== 'a relay' && code !== 0) expect(stderr).toMatch(ONE_ERROR);
        if (name === 'a relay') checkWithoutPower(root, log, at);
        if (existsSync(db)) openStore(db).close();
        checkCrashed(root, { known: null, runs: new Set() });
        await finish(root, sandbox.url, truth);
      } catch (error) {
        broken.push(`${call}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    process.stderr.write(`${name}, ${what} at ${kind}${file}, up to call ${at - step}; ${JSON.stringify([...ends])}\n`);
    expect(broken).toEqual([]);
    expect(ends.size).toBeGreaterThan(0);
  },
);
