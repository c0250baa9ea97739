import { mariadbAvailable, startMariadb } from '@catchword/testing/mariadb';
import { natsAvailable, startNats } from '@catchword/testing/nats';
import { postgresAvailable, startPostgres } from '@catchword/testing/postgres';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { type FakeS3, startS3 } from '@catchword/testing/s3';
import { onTestFinished } from 'vitest';
import type { SinkTarget } from '../../src/contract/checks.ts';
import type { Protocol } from './addresses.ts';
import {
  filesTarget,
  jsonlTarget,
  mysqlTarget,
  natsBucketTarget,
  natsTarget,
  type ProxiedTarget,
  postgresTarget,
  redisKeysTarget,
  redisTarget,
  type S3Target,
  s3Target,
  webhookTarget,
} from './targets.ts';

/** What the contract checks and the kill test run over: a kind that is added here is added to both. */
export interface TargetKind<Target extends SinkTarget = SinkTarget> {
  /** Part of a variable: `CATCHWORD_SINK_<NAME>`. */
  readonly name: string;
  readonly effectivelyOnce: boolean;
  /**
   * What its store can do: keep a mark, list what it has, make products as the relay says, keep all events, and be filled again
   * if it lost everything.
   */
  readonly can: readonly ('mark' | 'list' | 'apply' | 'events' | 'refill')[];
  /** Options to check; the kill test uses the first. */
  readonly variants: readonly string[];
  readonly isAvailable: boolean;
  /** `stores` if it needs a server that is not from npm; `slow` if it takes long. */
  readonly tags: readonly ('stores' | 'slow')[];
  readonly start: () => Promise<{ readonly port: number; stop(): Promise<void> }>;
  readonly prepare: (port: number, options: string) => Promise<Target>;
}

const WITHOUT_SERVER = { isAvailable: true, tags: [], start: async () => ({ port: 0, stop: async () => {} }) };

const ALL_PROXIED: readonly (TargetKind<ProxiedTarget> & { readonly name: Protocol })[] = [
  {
    name: 'webhook',
    effectivelyOnce: false,
    can: [],
    variants: [''],
    ...WITHOUT_SERVER,
    prepare: (_, options) => webhookTarget(undefined, options),
  },
  {
    name: 'postgres',
    effectivelyOnce: true,
    can: ['mark', 'list', 'apply', 'refill'],
    variants: ['', '&removals=delete'],
    isAvailable: postgresAvailable,
    tags: ['stores'],
    start: () => startPostgres({ settings: ['fsync=off'] }),
    prepare: postgresTarget,
  },
  {
    name: 'mysql',
    effectivelyOnce: true,
    can: ['mark', 'list', 'apply', 'refill'],
    variants: ['', '&removals=delete'],
    isAvailable: mariadbAvailable,
    tags: ['stores'],
    start: () => startMariadb(),
    prepare: mysqlTarget,
  },
  {
    name: 'redis',
    effectivelyOnce: true,
    can: ['mark', 'list', 'events', 'refill'],
    variants: [''],
    isAvailable: redisAvailable,
    tags: ['stores'],
    start: () => startRedis(),
    prepare: redisTarget,
  },
  {
    name: 'nats',
    effectivelyOnce: true,
    can: ['mark', 'list', 'events', 'refill'],
    variants: [''],
    isAvailable: natsAvailable,
    tags: ['stores'],
    start: () => startNats(),
    prepare: natsTarget,
  },
];

/** One store for all targets, which find its objects here. */
function s3Kind(): Pick<TargetKind<S3Target>, 'isAvailable' | 'tags' | 'start' | 'prepare'> {
  const stores = new Map<number, FakeS3>();
  return {
    isAvailable: true,
    tags: ['slow'],
    start: async () => {
      const store = await startS3();
      stores.set(store.port, store);
      return store;
    },
    prepare: (port, options) => s3Target(stores.get(port) as FakeS3, options),
  };
}

/** Those whose server is installed. */
export const PROXIED_KINDS = ALL_PROXIED.filter(({ isAvailable }) => isAvailable);

export const KINDS: readonly TargetKind[] = [
  {
    name: 'jsonl',
    effectivelyOnce: true,
    // A new file continues where the one that is gone ended.
    can: ['mark', 'list', 'events'],
    variants: ['?rotate=20kB', ''],
    ...WITHOUT_SERVER,
    prepare: (_, options) => jsonlTarget(options),
  },
  {
    name: 'example',
    effectivelyOnce: true,
    can: ['list', 'apply'],
    variants: [''],
    ...WITHOUT_SERVER,
    tags: ['slow'],
    prepare: filesTarget,
  },
  ...ALL_PROXIED,
  {
    name: 's3',
    effectivelyOnce: true,
    can: ['mark', 'list', 'apply', 'refill'],
    variants: ['&files=5', '&files=3&format=ndjson'],
    ...s3Kind(),
  },
  {
    name: 'rediskeys',
    effectivelyOnce: true,
    can: ['mark', 'list', 'apply', 'refill'],
    variants: [''],
    isAvailable: redisAvailable,
    tags: ['stores'],
    start: () => startRedis(),
    prepare: redisKeysTarget,
  },
  {
    name: 'natskv',
    effectivelyOnce: true,
    can: ['mark', 'list', 'apply', 'refill'],
    variants: [''],
    isAvailable: natsAvailable,
    tags: ['stores'],
    start: () => startNats(),
    prepare: natsBucketTarget,
  },
];

export interface PreparedTarget {
  readonly kind: TargetKind;
  readonly target: SinkTarget;
}

/**
 * Prepares a store of each kind whose server is installed, but not the example, which writes a file for each event.
 * @param only the names of the kinds; default: all
 */
export async function prepareAll(variantOf: (kind: TargetKind) => string, only?: readonly string[]) {
  const kinds = KINDS.filter(({ name, isAvailable }) => isAvailable && (only?.includes(name) ?? name !== 'example'));
  const prepared = kinds.map(async (kind): Promise<PreparedTarget> => {
    const server = await kind.start();
    const target = await kind.prepare(server.port, variantOf(kind));
    onTestFinished(async () => {
      await target.remove();
      await server.stop();
    });
    return { kind, target };
  });
  const targets = await Promise.all(prepared);
  /** Settings that name the stores as sinks. */
  const settings: Record<string, string> = {};
  for (const { kind, target } of targets) {
    settings[`CATCHWORD_SINK_${kind.name.toUpperCase()}`] = target.url;
    if (target.secret !== undefined) settings[`CATCHWORD_SINK_${kind.name.toUpperCase()}_SECRET`] = target.secret;
  }
  return { targets, settings };
}
