import { jsonlKind } from './jsonl/jsonl-kind.ts';
import { moduleKind } from './module/module-kind.ts';
import { mysqlKind } from './mysql/mysql-kind.ts';
import { natsKind } from './nats/nats-kind.ts';
import { postgresKind } from './postgres/postgres-kind.ts';
import { redisKind } from './redis/redis-kind.ts';
import { s3Kind } from './s3/s3-kind.ts';
import type { SinkKind } from './sink-kind.ts';
import { webhookKind } from './webhook/webhook-kind.ts';

/** Every kind of store, in the order of documents: what it says of itself, and what loads its sink. */
// biome-ignore format: a kind is a line.
export const KINDS: Readonly<Record<string, SinkKind>> = {
  jsonl: { ...jsonlKind, load: async () => (await import('./jsonl/jsonl-sink.ts')).createJsonlSink },
  webhook: { ...webhookKind, load: async () => (await import('./webhook/webhook-sink.ts')).createWebhookSink },
  postgres: { ...postgresKind, load: async () => (await import('./postgres/postgres-sink.ts')).createPostgresSink },
  mysql: { ...mysqlKind, load: async () => (await import('./mysql/mysql-sink.ts')).createMysqlSink },
  redis: { ...redisKind, load: async () => (await import('./redis/redis-sink.ts')).createRedisSink },
  nats: { ...natsKind, load: async () => (await import('./nats/nats-sink.ts')).createNatsSink },
  s3: { ...s3Kind, load: async () => (await import('./s3/s3-sink.ts')).createS3Sink },
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
