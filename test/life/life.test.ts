// @module-tag slow
import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { query } from '@catchword/testing/sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runProcess } from '../support/cli.ts';
import { expectExactLog } from '../support/mirror.ts';
import { beginLife, type Life, TABLE } from './life.ts';
import { toolsAvailable } from './tools.ts';

const KILLS = process.env.CI === undefined ? 5 : 20;
const SEED = 7;
/** Spreads the kills over starts, runs and the pauses between them. */
const WITHIN_MS = 700;
const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
/** A corrected clock may cost a pause of seconds, but not a wait for times that were stored by the other clock. */
const SOON = { timeout: 60_000, interval: 250 };

interface LoggedRun {
  readonly id: number;
  readonly kind: string;
  readonly state: string;
  readonly error: string | null;
}

describe
  .skipIf(!toolsAvailable)
  .sequential('the life of an installation', { timeout: 900_000, tags: ['stores'] }, () => {
    let life: Life;
    beforeAll(async () => {
      life = await beginLife();
    }, 120_000);
    afterAll(async () => {
      await life.end();
      life.project.remove();
    });
    beforeEach(() => life.forgetProblems());
    afterEach(({ task }) => {
      if (task.result?.state === 'fail') process.stderr.write(`\n"${task.name}" failed.\n${life.evidence()}\n`);
    });

    const lastRun = (): number =>
      query<LoggedRun>(life.project.db, 'SELECT * FROM run_log ORDER BY id DESC LIMIT 1')[0]?.id ?? 0;
    const runsAfter = (id: number): LoggedRun[] =>
      query<LoggedRun>(life.project.db, 'SELECT * FROM run_log WHERE id > ? ORDER BY id', id);

    /** Copies the mirror into one file with Debian's sqlite3, while the daemon writes. */
    async function backUp(name: string): Promise<string> {
      const command = ['sqlite3', life.project.db, `.backup ${name}`];
      expect(await runProcess(command, {}, life.project.directory)).toMatchObject({ code: 0, stderr: '' });
      return `${life.project.directory}/${name}`;
    }

    /** Replaces the mirror by the backup and deletes the WAL files. */
    function putBack(backup: string): void {
      copyFileSync(backup, `${life.project.db}.new`);
      for (const suffix of ['-wal', '-shm']) rmSync(`${life.project.db}${suffix}`, { force: true });
      renameSync(`${life.project.db}.new`, life.project.db);
    }

    /** Expects no problems since the last call, and no failures of the daemon but these. */
    function expectNoProblems(failures: readonly string[] = []): void {
      expect(life.readers.takeProblems()).toEqual([]);
      expect(life.receiver.takeProblems()).toEqual([]);
      expect(life.takeFailures().filter((code) => !failures.includes(code))).toEqual([]);
    }

    it('catchword installs from the packed tarball and passes the demo', async () => {
      const { code, stdout } = await life.catchword('demo');
      expect(code).toBe(0);
      expect(stdout).toMatch(/compared one by one: all [\d,]+ products of the service are here, each the same/);
    });

    it('catchword fills the mirror and both stores as soon as pm2 has started the daemon', async () => {
      await life.source.start();
      life.source.busy();
      await life.pm2.start();
      await life.up();
      await life.allEqual();
      expect(await life.sinkStates()).toEqual({ shop: 'live', hook: 'live' });
      expect(life.receiver.takeProblems()).toEqual([]);
      expect(life.takeFailures()).toEqual([]);
    });

    it('catchword keeps writing to the files that sqlite3 and Python read', async () => {
      life.source.busy();
      await life.up();
      for (let round = 0; round < 3; round++) {
        const before = life.lastSeq();
        await life.source.mutate({ update: 5 });
        await life.readers.saw(before + 1);
      }
      await life.allEqual();
      expectNoProblems();
    });

    it(`catchword loses nothing when the daemon is killed ${KILLS} times while it works`, async () => {
      life.source.busy();
      life.project.configure({ CATCHWORD_FULL_CRON: '*/3 * * * * *' });
      await life.pm2.start();
      const random = createRandom(SEED);
      let killedAtWork = 0;
      let pid: number | null = null;
      for (let killed = 0; killed < KILLS; killed++) {
        const requests = await life.source.requests();
        const hasAsked = async (): Promise<boolean> => (await life.source.requests()) > requests;
        pid = await life.pm2.pidAfter(pid);
        // A quarter are killed while they start, the others while they read and write.
        if (random() > 0.25) await expect.poll(hasAsked, SOON).toBe(true);
        await delay(random() * WITHIN_MS);
        await life.source.mutate({ create: 2, update: 20, remove: 1, seed: killed });
        if (await hasAsked()) killedAtWork++;
        if (killed === KILLS - 1) life.project.configure({ CATCHWORD_FULL_CRON: life.dailyCron });
        process.kill(pid, 'SIGKILL');
      }
      await life.pm2.pidAfter(pid);
      // Otherwise this test would prove nothing.
      expect(killedAtWork).toBeGreaterThan(KILLS / 2);
      await life.up();
      await life.allEqual();
      await life.readers.saw(life.lastSeq());
      expectNoProblems();
    });

    it('catchword continues from a backup after the stores are redelivered as docs/sink-trouble.md says', async () => {
      life.source.busy();
      await life.up();
      const backup = await backUp('backup.db');
      const seq = life.lastSeq();
      await life.source.mutate({ create: 5, update: 50, remove: 5 });
      await life.readers.saw(seq + 60);
      await life.allEqual();
      await life.pm2.stop();
      await life.readers.without(async () => putBack(backup));
      life.readers.forget();
      // More changes than were lost, so that the restored log reaches the sequence that PostgreSQL confirmed.
      await life.source.mutate({ create: 5, update: 300 });
      await life.pm2.start();

      await expect.poll(() => life.sinkStates(), SOON).toMatchObject({ shop: 'stopped' });
      // As docs/sink-trouble.md says: first a run, so that the mirror has the products created since the backup.
      const restarted = lastRun();
      await expect.poll(() => runsAfter(restarted).some(({ state }) => state === 'complete'), SOON).toBe(true);
      await expect
        .poll(() => life.readiness(), SOON)
        .toMatchObject({ ready: false, reason: expect.stringContaining('shop') });
      // And a store that deduplicates by event id forgets the ids.
      life.receiver.takeProblems();
      life.receiver.forget();
      for (const [verb, name] of [
        ['replay', 'shop'],
        ['resume', 'shop'],
        ['replay', 'hook'],
      ] as const) {
        expect(await life.catchword('sink', verb, name)).toMatchObject({ code: 0, stderr: '' });
      }
      await life.up();
      await life.allEqual();
      expectNoProblems(['SINK_CONFLICT']);
    });

    it('catchword exits with a clear error when the mirror is replaced, and continues with the new file', async () => {
      await life.up();
      await life.allEqual();
      const backup = await backUp('same.db');
      const pid = life.pm2.pid();
      expect(pid).not.toBeNull();
      await life.readers.without(async () => {
        putBack(backup);
        await life.pm2.pidAfter(pid);
      });
      expect(life.takeFailures()).toEqual(['MIRROR_REPLACED']);
      await life.source.mutate({ create: 3, update: 10 });
      await life.up();
      await life.allEqual();
      expectNoProblems();
    });

    it('catchword continues within seconds when its clock is put two hours ahead and back', async () => {
      await life.up();
      const change = async (): Promise<void> => {
        const seq = life.lastSeq();
        await life.source.mutate({ update: 10 });
        await expect.poll(() => life.lastSeq(), SOON).toBeGreaterThanOrEqual(seq + 10);
      };
      // Changed while it runs.
      life.project.clock.set(2 * HOUR_MS);
      await change();
      await change();
      life.project.clock.set(0);
      await change();
      // Started with the wrong clock, then with the correct one.
      life.project.clock.set(2 * HOUR_MS);
      await life.pm2.start();
      await change();
      await life.pm2.stop();
      life.project.clock.set(0);
      await life.pm2.start();
      await change();
      // Killed with the wrong clock, so that no lease is released.
      life.project.clock.set(2 * HOUR_MS);
      await change();
      const pid = life.pm2.pid();
      life.project.clock.set(0);
      process.kill(pid ?? Number.NaN, 'SIGKILL');
      await life.pm2.pidAfter(pid);
      await change();
      await life.up();
      await life.allEqual();
      // A receiver with a correct clock rejects events signed two hours ahead.
      expectNoProblems();
    });

    it('catchword refills a truncated table', async () => {
      life.source.busy();
      await life.up();
      await life.client.query(`TRUNCATE ${TABLE}`);
      await life.source.mutate({ update: 10 });
      await life.allEqual();
      expectNoProblems(['SINK_REFILLED']);
    });

    it('catchword catches up after a week of downtime with one full load', async () => {
      await life.up();
      await life.pm2.stop();
      await life.source.stop();
      for (const clock of [life.project.clock, life.source.clock]) clock.set(WEEK_MS);
      life.receiver.setClock(WEEK_MS);
      await life.source.start();
      await life.source.mutate({ create: 30, update: 300, remove: 20 });
      const before = lastRun();
      life.source.busy();
      await life.pm2.start();
      await expect
        .poll(() => runsAfter(before).filter(({ kind, state }) => kind === 'full' && state === 'complete'), SOON)
        .toHaveLength(1);
      await life.up();
      await expect
        .poll(
          () => runsAfter(before).filter(({ kind, state }) => kind === 'delta' && state === 'complete').length,
          SOON,
        )
        .toBeGreaterThan(3);
      await life.allEqual();
      expect(runsAfter(before).filter(({ kind }) => kind === 'full')).toHaveLength(1);
      expectNoProblems();
    });

    it('catchword renews an expired access token by itself', async () => {
      await life.up();
      await life.source.control('expire', { reference: 'sandbox-reader' });
      await life.source.mutate({ create: 3, update: 10 });
      await life.allEqual();
      expectNoProblems();
    });

    it('catchword reports a revoked key everywhere, and catches up with the new one', async () => {
      life.source.busy();
      await life.up();
      await life.source.control('key', { api_key: 'RENEWEDKEY' });
      const before = lastRun();
      await life.source.mutate({ create: 3, update: 10, remove: 2 });
      await expect.poll(() => life.readiness(), SOON).toMatchObject({ ready: false });
      const status = await life.catchword('status');
      expect(status.stdout).toMatch(/API key/i);
      const doctor = await life.catchword('doctor');
      expect(doctor.code).not.toBe(0);
      expect(doctor.stdout).toMatch(/^failed .*(API key|403|refused)/im);
      for (const verb of ['sync', 'verify']) expect((await life.catchword(verb)).code).not.toBe(0);
      expect(runsAfter(before).filter(({ state }) => state === 'complete').length).toBeLessThanOrEqual(1);
      // A run that was under way repeats its request first, and fails later.
      const refused = ['SOURCE_AUTH', 'SOURCE_UNAVAILABLE'];
      const failures = life.takeFailures();
      expect(failures).not.toEqual([]);
      expect(refused).toEqual(expect.arrayContaining(failures));

      life.project.configure({ CATCHWORD_API_KEY: 'RENEWEDKEY' });
      await life.pm2.start();
      await life.up();
      await life.allEqual();
      expectNoProblems(refused);
    });

    it('catchword ends with equal source, mirror and stores, and all checks passing', async () => {
      await life.source.quiet();
      await life.pm2.stop();
      const sync = await life.catchword('sync', '--full', '--json');
      expect(sync).toMatchObject({ code: 0 });
      expect(JSON.parse(sync.stdout)).toMatchObject({ kind: 'full', state: 'complete', proof: 'sealed' });
      await life.pm2.start();
      await life.up();
      await life.allEqual();
      await life.readers.saw(life.lastSeq());
      expect(await life.catchword('verify')).toMatchObject({ code: 0 });
      const doctor = await life.catchword('doctor');
      expect(doctor.stdout).not.toMatch(/^failed/m);
      expect(doctor.code).toBe(0);
      expect(await life.sinkStates()).toEqual({ shop: 'live', hook: 'live' });
      await expect.poll(() => life.readiness(), SOON).toMatchObject({ ready: true, reason: null });
      expectNoProblems();
      expect(life.readers.count()).toBeGreaterThan(100);
      await life.readers.stop();
      await life.pm2.stop();
      expectExactLog(life.project.db);
    });
  });
