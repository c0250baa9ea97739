import type { SinkKind } from '@catchword/sink-kit/sink-kind';
import { natsKind } from '@catchword/sink-nats/nats-kind';
import { redisKind } from '@catchword/sink-redis/redis-kind';
import { s3Kind } from '@catchword/sink-s3/s3-kind';
import { mysqlKind } from '@catchword/sink-sql/mysql/mysql-kind';
import { postgresKind } from '@catchword/sink-sql/postgres/postgres-kind';
import { jsonlKind } from './jsonl/jsonl-kind.ts';
import { moduleKind } from './module/module-kind.ts';
import { webhookKind } from './webhook/webhook-kind.ts';

/** Every kind of store, in the order of documents: what it says of itself, and what loads its sink. */
// biome-ignore format: a kind is a line.
export const KINDS: Readonly<Record<string, SinkKind>> = {
  jsonl: { ...jsonlKind, load: async () => (await import('./jsonl/jsonl-sink.ts')).createJsonlSink },
  webhook: { ...webhookKind, load: async () => (await import('./webhook/webhook-sink.ts')).createWebhookSink },
  postgres: { ...postgresKind, load: async () => (await import('@catchword/sink-sql/postgres/postgres-sink')).createPostgresSink },
  mysql: { ...mysqlKind, load: async () => (await import('@catchword/sink-sql/mysql/mysql-sink')).createMysqlSink },
  redis: { ...redisKind, load: async () => (await import('@catchword/sink-redis/redis-sink')).createRedisSink },
  nats: { ...natsKind, load: async () => (await import('@catchword/sink-nats/nats-sink')).createNatsSink },
  s3: { ...s3Kind, load: async () => (await import('@catchword/sink-s3/s3-sink')).createS3Sink },
  module: moduleKind,
};

/** What keeps two mirrors, or two sinks, of a kind apart. */
export function apartText(kind: string): string {
  return KINDS[kind]?.apart ?? 'another address';
}

/** How the addresses of a kind look, for people. */
export function formsOf({ schemes, isPath }: SinkKind): string[] {
  return schemes.map((scheme) => `${scheme}${isPath === true ? 'PATH' : '//…'}`);
}
