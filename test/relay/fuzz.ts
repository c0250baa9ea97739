import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { mariadbAvailable, startMariadb } from '@catchword/testing/mariadb';
import { natsAvailable, startNats } from '@catchword/testing/nats';
import { postgresAvailable, startPostgres } from '@catchword/testing/postgres';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { ADDRESSES, type Protocol } from './addresses.ts';
import { type MangledServer, mangledServer } from './mangled.ts';
import { startWatchedRelay } from './watched-relay.ts';

/*
 * Feeds real stores through proxies that mangle their answers, while a healthy sink goes on in the same process.
 *
 *   nice npx tsx test/relay/fuzz.ts 20 1    for 20 minutes, from seed 1
 */

/** A receiver that accepts everything. */
async function startReceiver() {
  const server = createServer((request, response) => void request.resume().on('end', () => response.end('ok')));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

type Store = Pick<Awaited<ReturnType<typeof startReceiver>>, 'port' | 'stop'>;

interface Kind {
  readonly isAvailable: boolean;
  readonly start: () => Promise<Store>;
  readonly options: string;
}

const KINDS: Readonly<Record<Protocol, Kind>> = {
  postgres: {
    isAvailable: postgresAvailable,
    start: () => startPostgres({ settings: ['fsync=off'] }),
    options: '?table=books',
  },
  mysql: { isAvailable: mariadbAvailable, start: () => startMariadb({ password: 'secret' }), options: '?table=books' },
  redis: { isAvailable: redisAvailable, start: startRedis, options: '' },
  nats: { isAvailable: natsAvailable, start: startNats, options: '' },
  webhook: { isAvailable: true, start: startReceiver, options: '&timeout=2' },
};

/** How often products change, and failed sinks are tried again. */
const TURN_MS = 100;
const MAX_MEMORY_MB = 600;

/**
 * Mangles until the time is over.
 * @param seed of each store's first connection
 * @throws Error if the relay ends, the healthy sink stays behind, memory runs away, or something is written to stdout
 */
export async function fuzzSinks({ ms, seed }: { readonly ms: number; readonly seed: number }) {
  const stores: { readonly protocol: Protocol; readonly server: Store; readonly proxy: MangledServer }[] = [];
  for (const [protocol, kind] of Object.entries(KINDS) as [Protocol, Kind][]) {
    if (!kind.isAvailable) continue;
    const server = await kind.start();
    stores.push({ protocol, server, proxy: await mangledServer(protocol, server.port, seed) });
  }
  const urls = stores.map(({ protocol, proxy }) => [
    protocol,
    ADDRESSES[protocol](proxy.port) + KINDS[protocol].options,
  ]);
  const watched = startWatchedRelay(Object.fromEntries(urls));
  const seeds = (): string => stores.map(({ protocol, proxy }) => `${protocol} ${proxy.seed}`).join(', ');
  let peakMemoryMb = 0;
  try {
    await watched.relay.shows('sink is open');
    for (const end = Date.now() + ms; Date.now() < end; await delay(TURN_MS)) {
      watched.change();
      watched.hurry();
      await watched.healthyGoesOn();
      peakMemoryMb = Math.max(peakMemoryMb, watched.memoryMb());
      if (peakMemoryMb > MAX_MEMORY_MB) throw new Error(`the relay uses ${peakMemoryMb} MB`);
    }
    const { code, stdout, stderr } = await watched.stop();
    if (code !== 0 || stdout !== '') throw new Error(`the relay ended with ${code} and printed ${stdout}`);
    const escaped = new Set(stderr.match(/"reason":"its driver failed: [^"]*/g));
    return {
      /** Mangled connections by protocol. */
      connections: Object.fromEntries(stores.map(({ protocol, proxy }) => [protocol, proxy.seed - seed])),
      /** Errors that drivers threw outside of any call, which would have ended the process. */
      escaped: [...escaped].map((reason) => reason.replace(/^.*failed: /, '')),
      peakMemoryMb: Math.round(peakMemoryMb),
    };
  } catch (error) {
    const { stderr } = await watched.stop();
    throw new Error(`next seeds: ${seeds()}\n${stderr.slice(-3_000)}`, { cause: error });
  } finally {
    for (const { proxy, server } of stores) {
      await proxy.stop();
      await server.stop();
    }
  }
}

const [script = '', minutes = '1', first = '1'] = process.argv.slice(1);
if (script === import.meta.filename) {
  const result = await fuzzSinks({ ms: Number(minutes) * 60_000, seed: Number(first) });
  process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
}
