import { readFileSync } from 'node:fs';
import { natsAvailable } from '@catchword/testing/nats';
import { pgbouncerAvailable, startPgbouncer } from '@catchword/testing/pgbouncer';
import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { redisAvailable } from '@catchword/testing/redis';
import type { ServerProcess } from '@catchword/testing/server';
import { useNats, useRedis } from '@catchword/testing/used-servers';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { until, wrapSink } from '../../src/contract/harness.ts';
import type { SinkConfig } from '../../src/relay/sink-config.ts';
import { books, configAt, feeding, fillEnded } from './feeding.ts';
import { readableLog } from './readable-log.ts';
import { PROXIED_KINDS } from './target-kinds.ts';
import { natsTarget, postgresTarget, redisTarget } from './targets.ts';

const WARN = 40;
const REOPENED = 'idle connection ended, opening another one';

/** Feeds a sink, waits until it is idle, and lets `end` end its connection; then 40 products change. */
async function endedWhileIdle(scene: Awaited<ReturnType<typeof feeding>>, config: SinkConfig, end: () => unknown) {
  const { harness, target } = scene;
  const { lines, log } = readableLog();
  const sizes: number[] = [];
  let removes = true;
  const recorded = wrapSink(config, (sink) => ({
    deliver: async (events, mark, signal) => {
      sizes.push(events.length);
      await sink.deliver(events, mark, signal);
      removes = sink.apply !== undefined;
    },
  }));
  harness.start(recorded, { log });
  await harness.deliver(books(3, 1));
  await until('the fill has ended', () => !removes || harness.sink().fillEnd !== null);
  await end();
  harness.change(books(40, 2));
  return {
    lines,
    sizes,
    /** Why the sink was opened again. */
    reasons: () => lines.filter(({ msg }) => msg === REOPENED).map(({ reason }) => reason),
    /** Expects that everything arrived, in full batches and without a warning. */
    arrived: async () => {
      await harness.caughtUp();
      expect((await target.read()).products).toEqual(harness.living());
      expect(lines.filter(({ level }) => Number(level) >= WARN)).toEqual([]);
      expect(sizes.slice(1).every((size) => size === 40)).toBe(true);
    },
  };
}

/** The sinks' connections, as PostgreSQL knows them. */
const BACKENDS = `SELECT pid, state FROM pg_stat_activity WHERE application_name = 'catchword'`;

for (const { name, tags, start, prepare } of PROXIED_KINDS) {
  describe(`an idle connection of ${name}`, { tags: [...tags] }, () => {
    let server: Awaited<ReturnType<typeof start>>;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server.stop());

    it('the relay replaces an idle connection that ended before the next delivery', async () => {
      const scene = await feeding(prepare(server.port, ''));
      const { target } = scene;
      const ended = await endedWhileIdle(scene, scene.config, async () => {
        await target.interrupt();
        await target.restore();
      });
      await ended.arrived();
    });

    it('the relay replaces a connection that a firewall has forgotten', async () => {
      const scene = await feeding(prepare(server.port, ''));
      const { target } = scene;
      const ended = await endedWhileIdle(scene, scene.config, () => target.forget());
      await ended.arrived();
      expect(ended.reasons()).toEqual([expect.stringMatching(/ECONNRESET|UND_ERR_SOCKET/)]);
    });

    it('the relay warns if it cannot replace an idle connection', async () => {
      const scene = await feeding(prepare(server.port, ''));
      const { target } = scene;
      const ended = await endedWhileIdle(scene, scene.config, () => target.interrupt());
      await scene.harness.failed();
      await target.restore();
      await scene.harness.caughtUp();
      const warned = ended.lines.find(({ level }) => Number(level) >= WARN);
      expect(warned).toMatchObject({ msg: 'sink failed, retrying', failures: 1 });
      expect(warned?.reason).toMatch(/ECONNREFUSED|connection refused/);
    });

    it('the system keeps an idle connection alive', async () => {
      const { harness, target, config } = await feeding(prepare(server.port, ''));
      harness.start(config);
      await harness.deliver(books(3, 1));
      await fillEnded(harness, config);
      const port = Number(/127\.0\.0\.1:(\d+)/.exec(target.url)?.[1])
        .toString(16)
        .toUpperCase()
        .padStart(4, '0');
      // Columns: number, local and remote address, state, queues, timer (02: keep-alive) with its end in hundredths.
      const rows = readFileSync('/proc/net/tcp', 'utf8')
        .split('\n')
        .map((row) => row.trim().split(/\s+/));
      const [own] = rows.filter(([, , remote = '', state]) => remote.endsWith(`:${port}`) && state === '01');
      const [timer = '', left = ''] = own?.[5]?.split(':') ?? [];
      expect(timer).toBe('02');
      expect(Number.parseInt(left, 16)).toBeLessThanOrEqual(6_000);
    });
  });
}

describe.skipIf(!postgresAvailable)('an idle connection to PostgreSQL', { tags: ['stores'] }, () => {
  const postgres = usePostgres();
  const gone = async () => (await postgres.client.query(BACKENDS)).rowCount === 0;

  it('idle_session_timeout costs no warning and no smaller batch', { tags: ['slow'] }, async () => {
    const scene = await feeding(postgresTarget(postgres.port));
    const reset = async (): Promise<void> => {
      await postgres.client.query('ALTER ROLE postgres RESET idle_session_timeout');
    };
    onTestFinished(reset);
    await postgres.client.query('ALTER ROLE postgres SET idle_session_timeout = 5000');
    const ended = await endedWhileIdle(scene, scene.config, async () => {
      await until('the server ends it', gone);
      await reset();
    });
    await ended.arrived();
    expect(ended.reasons()).toEqual(['PostgreSQL: terminating connection due to idle-session timeout (57P05)']);
  });

  it('pg_terminate_backend between two deliveries costs no warning', async () => {
    const scene = await feeding(postgresTarget(postgres.port));
    const ended = await endedWhileIdle(scene, scene.config, async () => {
      await postgres.client.query(`SELECT pg_terminate_backend(pid) FROM (${BACKENDS}) AS sinks`);
      await until('the server ends it', gone);
    });
    await ended.arrived();
    expect(ended.reasons()).toEqual(['PostgreSQL: terminating connection due to administrator command (57P01)']);
  });

  it.skipIf(!pgbouncerAvailable)(
    'a pooler that starts again between two deliveries costs no warning',
    { tags: ['stores', 'slow'] },
    async () => {
      const scene = await feeding(postgresTarget(postgres.port));
      const pooler: ServerProcess = await startPgbouncer(postgres.port);
      onTestFinished(() => pooler.stop());
      const config = configAt(scene.target.url.replace(/:\d+\//, `:${pooler.port}/`));
      const ended = await endedWhileIdle(scene, config, async () => {
        await pooler.kill('SIGKILL');
        await pooler.restart();
      });
      await ended.arrived();
    },
  );
});

describe.skipIf(!redisAvailable)('an idle connection to Redis', { tags: ['stores'] }, () => {
  const redis = useRedis();
  const clients = async () =>
    [...String(await redis.client.client('LIST')).matchAll(/^id=(\d+)/gm)].map(([, id]) => id);

  it.each(['CLIENT KILL', 'timeout'])('%s between two deliveries costs no warning', async (how) => {
    const scene = await feeding(redisTarget(redis.server.port));
    onTestFinished(() => void redis.client.config('SET', 'timeout', '0'));
    const ended = await endedWhileIdle(scene, scene.config, async () => {
      const own = String(await redis.client.client('ID'));
      const before = (await clients()).filter((id) => id !== own);
      if (how === 'timeout') await redis.client.config('SET', 'timeout', '1');
      else await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await until('the server ends it', async () => (await clients()).every((id) => !before.includes(id)));
      await redis.client.config('SET', 'timeout', '0');
    });
    await ended.arrived();
    expect(ended.reasons()).toEqual([
      expect.stringMatching(/^Redis: (the server closed the connection|read ECONNRESET)/),
    ]);
  });
});

describe.skipIf(!natsAvailable)('an idle connection to NATS', { tags: ['stores'] }, () => {
  const nats = useNats();

  it('NATS that starts again between two deliveries costs no warning', async () => {
    const scene = await feeding(natsTarget(nats.server.port));
    const ended = await endedWhileIdle(scene, scene.config, async () => {
      await nats.server.kill('SIGTERM');
      await nats.server.restart();
    });
    await ended.arrived();
    expect(ended.reasons()).toEqual([expect.stringMatching(/^NATS: /)]);
  });
});
