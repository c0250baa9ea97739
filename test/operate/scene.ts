import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { productOf } from '@catchword/catalog/product';
import type { RunKind } from '@catchword/catalog/run-types';
import { serveHttp } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { createHandClock } from '@catchword/testing/test-clocks';
import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import type { ChannelEvent } from '../../src/operate/incidents/channel.ts';
import { type ChannelConfig, channelConfig } from '../../src/operate/incidents/channel-config.ts';
import { type NotifierOptions, startNotifier } from '../../src/operate/incidents/notifier.ts';
import type { RunEnd } from '../../src/store/rows/write-runs.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { openStore } from '../../src/store/store.ts';
import { SELECTION } from '../support/mirror.ts';
import { place } from '../support/place.ts';

const START = Date.UTC(2026, 10, 22, 10);
export const NO_COUNTS = {
  pages: 0,
  items: 0,
  created: 0,
  updated: 0,
  removed: 0,
  restored: 0,
  missing: 0,
  rejected: 0,
  requests: 0,
};

export const SECRET = `whsec_${Buffer.from('a secret of thirty-two bytes, so').toString('base64')}`;
export const MINUTE = 60_000;

/** A mirror that was complete a moment ago, on a clock that the test moves. */
export function mirrorScene() {
  const db = join(temporaryDirectory(), 'catalog.db');
  const clock = createHandClock(START);
  const store = openStore(db);
  const lines: Record<string, unknown>[] = [];
  const write = (line: Buffer, _encoding: string, done: () => void): void => {
    lines.push(JSON.parse(line.toString()) as Record<string, unknown>);
    done();
  };
  const log = pino({ level: 'trace' }, new Writable({ write }));
  const disk = { free: 50, size: 100 };
  const notifiers = new Set<() => Promise<void>>();
  onTestFinished(async () => {
    for (const stop of notifiers) await stop();
    store.close();
  });

  function completed(): void {
    writeUnder(store.keeperLease, clock.now(), (writer) => writer.advanceWatermark(clock.now(), clock.now()));
  }

  /** Adds a run that has ended. @param removals how many products it holds, at most 3 */
  function ended(end: Partial<Omit<RunEnd, 'counts'>>, removals = 0, kind: RunKind = 'full'): number {
    return writeUnder(store.keeperLease, clock.now(), (writer) => {
      const id = writer.runs.create({ kind, from: null, startedAt: clock.now(), tick: null, selection: SELECTION });
      const rest = { state: 'complete', proof: 'sealed', reasons: [], error: null } as const;
      writer.runs.end(id, { ...rest, ...end, finishedAt: clock.now(), counts: NO_COUNTS });
      writer.removals.hold(id, [1, 2, 3].slice(0, removals));
      return id;
    });
  }

  /** Adds a complete run that emptied prices. */
  function unusual(): void {
    const about = { from: 1, field: 'prices', products: 2_400, living: 40_000 };
    const id = ended({});
    writeUnder(store.keeperLease, clock.now(), ({ runs }) => runs.noteLosses(id, { prices: 2_400 }, about));
  }

  /** Adds a sink, or changes its state. */
  function sink(name: string, state: 'running' | 'stopped', error = ''): void {
    writeUnder(store.relayLease, clock.now(), ({ sinks }) => {
      sinks.configure({ name, kind: 'webhook', address: 'https://sink.example', identity: name });
      const { id } = sinks.get(name) ?? { id: 0 };
      if (state === 'stopped') sinks.stop(id, error, clock.now(), null);
    });
    const { id } = store.sinks.get(name) ?? { id: 0 };
    if (state === 'running') store.request(({ sinks }) => sinks.setState(id, 'running'));
  }

  /** Holds a sink whose view was changed. */
  function hold(name: string): void {
    const forecast = { has: 300, matching: 1, created: 0, updated: 0, removed: 299, failed: 0 };
    writeUnder(store.relayLease, clock.now(), ({ sinks }) => {
      const held = { why: 'view', where: '0', fields: null, forecast, isApproved: false } as const;
      sinks.hold(sinks.get(name)?.id ?? 0, held);
    });
  }

  /** Starts a notifier as the active daemon does. @returns what stops it */
  function start(channels: readonly ChannelConfig[], more: Partial<NotifierOptions> = {}): () => Promise<void> {
    const leased = store.daemonLease.acquire(clock.now());
    const sender = { name: 'books', host: 'shop-1' };
    const readyMaxAgeMs = 26 * 60 * MINUTE;
    const options = {
      store,
      leased,
      clock,
      log,
      channels,
      sender,
      readyMaxAgeMs,
      minFreeBytes: null,
      behindLimitMs: 1_800_000,
      disk: () => disk,
      ...more,
    };
    const notifier = startNotifier(options);
    const stop = async (): Promise<void> => {
      notifiers.delete(stop);
      await notifier.stop();
      leased.release();
    };
    notifiers.add(stop);
    return stop;
  }

  completed();
  writeUnder(store.keeperLease, clock.now(), ({ products }) => {
    const rows = [1, 2, 3].map((id) => {
      const vbid = `P${id}`;
      return { id, seq: id, product: productOf(vbid, { vbid }, JSON.stringify({ vbid })) };
    });
    products.insert(rows, clock.now());
  });
  return { db, clock, store, lines, disk, completed, ended, unusual, sink, hold, start };
}

/** A mirror whose sink has stopped, so that an episode is open and its message on its way. */
export async function inTrouble(channels: readonly ChannelConfig[], reason = 'the receiver answered 410') {
  const scene = mirrorScene();
  const stop = scene.start(channels);
  scene.sink('shop', 'stopped', reason);
  await scene.clock.pass(2 * MINUTE);
  return { ...scene, stop };
}

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Reply {
  readonly status: number;
  readonly headers?: Record<string, string>;
}

/** Receives what a channel sends. @param reply null: never answer */
export async function receiver(reply: (number: number) => Reply | null = () => ({ status: 204 })) {
  const received: Received[] = [];
  const url = await serveHttp((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (piece: string) => {
      body += piece;
    });
    request.on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, body });
      const answer = reply(received.length);
      if (answer !== null) response.writeHead(answer.status, answer.headers).end();
    });
  });
  const events = (): ChannelEvent[] =>
    received.flatMap(({ body }) => {
      const parsed = JSON.parse(body) as ChannelEvent & { readonly episodes?: ChannelEvent[] };
      return parsed.episodes ?? [parsed];
    });
  return { url, received, events };
}

export function channel(name: string, url: string, secret?: string): ChannelConfig {
  return channelConfig({ env: `CATCHWORD_NOTIFY_${name.toUpperCase()}`, name, url, secret });
}

/** A webhook channel that may reach this machine. */
export function hook(url: string, name = 'hook', options = ''): ChannelConfig {
  return channel(name, `webhook+${url}/secret-path?key=secret-key#allow=private${options}`, SECRET);
}

/** A source, and settings with a sink whose receiver is gone, and a channel. */
export async function goneSink() {
  const { url, events } = await receiver();
  const refusing = await receiver(() => ({ status: 410 }));
  const { directory, settings } = await place(
    { items: 50 },
    {
      LOG_LEVEL: 'info',
      CATCHWORD_NOTIFY_HOOK: `webhook+${url}/#allow=private`,
      CATCHWORD_SINK_SHOP: `webhook+${refusing.url}/#allow=private`,
    },
  );
  return { directory, settings, events };
}
