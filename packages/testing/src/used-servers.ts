import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import { type NatsServer, PATIENT, startNats } from './nats.ts';
import { type RedisServer, startRedis } from './redis.ts';

/** A Redis and a client for the tests of a `describe`; use them only in tests and hooks. */
export function useRedis(): { readonly server: RedisServer; readonly client: Redis } {
  const used = {} as { server: RedisServer; client: Redis };
  beforeAll(async () => {
    used.server = await startRedis();
    used.client = new Redis(used.server.url);
  });
  afterAll(async () => {
    used.client.disconnect();
    await used.server.stop();
  });
  return used;
}

/** The same for NATS. Its connection does not survive a kill of the server. */
export function useNats() {
  const used = {} as { server: NatsServer; connection: NatsConnection; manager: JetStreamManager };
  beforeAll(async () => {
    used.server = await startNats();
    used.connection = await connect({ servers: `127.0.0.1:${used.server.port}` });
    used.manager = await jetstreamManager(used.connection, PATIENT);
  });
  afterAll(async () => {
    await used.connection.close();
    await used.server.stop();
  });
  return used;
}
