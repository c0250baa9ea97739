import { distrustOf } from '@catchword/base/certificate';
import { CatchwordError } from '@catchword/base/errors';
import { hostUrls } from '@catchword/base/host-urls';
import { type ClientOptions, labelOf, type RedisPlace, reasonOf, redisPlace } from '@catchword/base/redis-place';
import { Redis } from 'ioredis';
import * as z from 'zod';
import { tryJob } from './jobs.ts';
import { ONE_TRY, ONE_TRY_MS } from './redis-connection.ts';

/** BullMQ needs blocking commands with fractions of a second, and `GETDEL`. */
const [MIN_MAJOR, MIN_MINOR] = [6, 2];

const ONCE: ClientOptions = {
  ...ONE_TRY,
  // A Redis that loads its data says so at once when it is asked for anything.
  enableReadyCheck: false,
  socketTimeout: ONE_TRY_MS,
};

/** What a sentinel answers: host and port; null if it does not know the name. */
const PRIMARY = z.tuple([z.string(), z.string()]).nullable();

export interface RedisCheck {
  /** The `host:port` of the primary; null without sentinels. */
  readonly primary: string | null;
  /** The problem of each sentinel that does not name the primary. */
  readonly silent: readonly string[];
}

function misconfigured(message: string, hint: string): CatchwordError {
  return new CatchwordError('QUEUE_MISCONFIGURED', message, { hint, setting: 'REDIS_URL' });
}

/** Connects, asks, and disconnects. @throws the error of the connection, which says more than the error of the command */
async function askOnce<Answer>(redis: Redis, ask: () => Promise<Answer>): Promise<Answer> {
  let reason: unknown;
  redis.on('error', (error) => {
    reason ??= error;
  });
  try {
    await redis.connect();
    const answer = await ask();
    // A database that does not exist fails no command: they would go to another one.
    if (reason !== undefined) throw reason;
    return answer;
  } catch (error) {
    throw reason ?? error;
  } finally {
    redis.disconnect();
  }
}

/** What Redis says when it will never take a job: rights, commands, keys of a cluster, a replica. */
const LASTING =
  /\b(NOPERM|CROSSSLOT|MOVED|ASK|CLUSTERDOWN|READONLY)\b|ACL failure|can't (run|access)|non local key|unknown command|DB index/;

/**
 * @param login what is missing in the address if the server rejects the user
 * @param mayFailOver whether a replica may just have been the primary
 */
function queueError(where: string, error: unknown, login: string, mayFailOver = false): CatchwordError {
  const cause = reasonOf(error);
  if (/^(NOAUTH|WRONGPASS|ERR .*AUTH)/.test(cause)) {
    return misconfigured(
      `${where} rejects this user: ${cause}`,
      `Put ${login} into REDIS_URL, or correct them there; Redis may also have turned the user off.`,
    );
  }
  const isAnswer = error instanceof Error && error.name === 'ReplyError';
  const message = `${where} ${isAnswer ? 'refuses a command' : 'cannot be reached'}: ${cause}`;
  const mayPass = mayFailOver && /\bREADONLY\b/.test(cause);
  if (isAnswer && LASTING.test(cause) && !mayPass) {
    return misconfigured(message, 'See docs/machines.md for what Redis must allow.');
  }
  const distrust = distrustOf(error);
  if (distrust !== null) return misconfigured(message, distrust.hint);
  return new CatchwordError('QUEUE_UNAVAILABLE', message, {
    hint: 'Start or correct Redis, or correct REDIS_URL; without REDIS_URL everything runs in one process.',
  });
}

/** Asks all sentinels at once. @throws CatchwordError if none names a primary */
async function askSentinels({ name, endpoints, login }: NonNullable<RedisPlace['sentinels']>): Promise<RedisCheck> {
  const answers = await Promise.all(
    endpoints.map(async (endpoint) => {
      const redis = new Redis({ ...ONCE, ...login, ...endpoint });
      const where = `the sentinel at ${labelOf(endpoint)}`;
      try {
        const answer = await askOnce(redis, () => redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name));
        const [host, port] = PRIMARY.parse(answer) ?? [];
        if (host !== undefined) return `${host}:${port}`;
        const hint = 'Correct the name in REDIS_URL, or let the sentinels monitor it.';
        return new CatchwordError('QUEUE_UNAVAILABLE', `${where} does not know ${name}`, { hint });
      } catch (error) {
        if (reasonOf(error).startsWith('ERR unknown command')) {
          return misconfigured(`${where} is not a sentinel`, 'Use the ports of the sentinels in REDIS_URL.');
        }
        return queueError(where, error, 'sentinel_user and sentinel_password');
      }
    }),
  );
  const failures = answers.filter((answer) => answer instanceof CatchwordError);
  const silent = failures.map(({ message }) => message);
  const primary = answers.find((answer) => typeof answer === 'string');
  if (primary !== undefined) return { primary, silent };
  const misconfiguration = failures.find(({ code }) => code === 'QUEUE_MISCONFIGURED');
  const hint = (misconfiguration ?? failures[0])?.hint;
  throw new CatchwordError(misconfiguration?.code ?? 'QUEUE_UNAVAILABLE', silent.join('; '), { hint });
}

/** @throws CatchwordError QUEUE_MISCONFIGURED if this Redis cannot hold the queue, as its `INFO` says */
function checkInfo(where: string, info: string): void {
  if (/^redis_mode:sentinel/m.test(info)) {
    throw misconfigured(`${where} is a sentinel`, 'Use redis+sentinel://HOST:PORT/NAME for REDIS_URL.');
  }
  const version = /^redis_version:(\S+)/m.exec(info)?.[1] ?? '0';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < MIN_MAJOR || (major === MIN_MAJOR && minor < MIN_MINOR)) {
    throw misconfigured(`${where} is version ${version}`, `Upgrade Redis to ${MIN_MAJOR}.${MIN_MINOR} or later.`);
  }
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction';
  if (policy === 'noeviction') return;
  const hint = 'Set maxmemory-policy to noeviction, or use another Redis.';
  throw misconfigured(`${where} may evict jobs: its maxmemory-policy is ${policy}`, hint);
}

/**
 * Checks that Redis can hold the queue: it adds, takes and removes a job. Hosted services may forbid `CONFIG`.
 * @throws CatchwordError QUEUE_UNAVAILABLE if it does not respond within a few seconds, or refuses the job for a reason
 *   that may pass (full, loading, busy); QUEUE_MISCONFIGURED if Redis is too old, may evict keys, rejects the user, lacks
 *   rights, is a replica or a node of a cluster, or has a certificate that is not trusted
 */
export async function checkRedis(url: string): Promise<RedisCheck> {
  const { label, sentinels, open } = redisPlace(hostUrls(url));
  const check = sentinels === null ? { primary: null, silent: [] } : await askSentinels(sentinels);
  const where = `Redis at ${check.primary ?? label}`;
  const redis = open(ONCE);
  try {
    await askOnce(redis, async () => {
      checkInfo(where, await redis.info());
      await tryJob(redis);
    });
  } catch (error) {
    if (error instanceof CatchwordError) throw error;
    throw queueError(where, error, 'the user and password', sentinels !== null);
  }
  return check;
}
