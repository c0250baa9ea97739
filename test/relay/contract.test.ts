import { afterAll, beforeAll, describe, it } from 'vitest';
import { type SinkSubject, sinkChecks } from '../../src/relay/contract/checks.ts';
import { natsAvailable, startNats } from '../support/nats.ts';
import { postgresAvailable, startPostgres } from '../support/postgres.ts';
import { type RedisServer, redisAvailable, startRedis } from '../support/redis.ts';
import type { ServerProcess } from '../support/server.ts';
import { filesTarget, jsonlTarget, natsTarget, postgresTarget, redisTarget, webhookTarget } from './targets.ts';

function check(subject: SinkSubject): void {
  for (const { name, run } of sinkChecks(subject)) it(name, run);
}

describe('jsonl', () => check({ effectivelyOnce: true, prepare: () => jsonlTarget() }));
describe('jsonl with rotation', () => check({ effectivelyOnce: true, prepare: () => jsonlTarget('?rotate=20kB') }));

describe('the example of the documentation', () => check({ effectivelyOnce: true, prepare: filesTarget }));

describe('webhook', () => check({ effectivelyOnce: false, prepare: () => webhookTarget() }));

describe.skipIf(!postgresAvailable)('postgres', () => {
  let server: ServerProcess;
  beforeAll(async () => {
    server = await startPostgres({ settings: ['fsync=off'] });
  });
  afterAll(() => server.stop());
  check({ effectivelyOnce: true, prepare: () => postgresTarget(server.port) });
  describe('with removals=delete', () =>
    check({ effectivelyOnce: true, prepare: () => postgresTarget(server.port, '&removals=delete') }));
});

describe.skipIf(!redisAvailable)('redis', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());
  check({ effectivelyOnce: true, prepare: () => redisTarget(server.port) });
});

describe.skipIf(!natsAvailable)('nats', () => {
  let server: ServerProcess;
  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(() => server.stop());
  check({ effectivelyOnce: true, prepare: () => natsTarget(server.port) });
});
