import { Server } from 'node:net';
import type { Service } from '@catchword/base/lifecycle';
import type { Logger } from '@catchword/base/log';
import { type MetricsOptions, startMetrics } from '../operate/metrics/metrics.ts';
import { type StateLimits, stateOf } from '../state/mirror-state.ts';
import { checkApart } from '../store/file/copy-subprocess.ts';
import { watchMirror } from '../store/file/watch-file.ts';
import { openStore } from '../store/store.ts';
import { addApi } from './api.ts';
import { createApp } from './app.ts';
import { addAuth } from './auth.ts';
import { createChangeFeed } from './change-feed.ts';
import { addHealth, addMetrics, type ReadinessOptions } from './health.ts';
import { STOPPING, sendError } from './http-error.ts';
import { checkExposure, listen } from './listen.ts';
import { addDescribed } from './openapi-document.ts';
import type { PageParts } from './pages/page-view.ts';
import { addPages } from './pages/pages.ts';
import { createReadSteps, inThisThread, type Steps } from './read-steps.ts';
import { createReaderViews } from './reader-views.ts';
import { createSearchSubprocess, type SearchApartOptions } from './search-subprocess.ts';
import { addWaiting } from './slow-readers.ts';
import { isStream } from './sse/open-streams.ts';
import { addSseRoute } from './sse/sse-route.ts';
import { STREAM_LIMITS, type StreamLimits } from './stream-limits.ts';

export interface WebOptions
  extends Omit<ReadinessOptions, 'store' | 'state'>,
    StateLimits,
    Omit<PageParts, 'store' | 'state' | 'steps' | 'startedAt'> {
  /** Path of the mirror; created if missing. */
  readonly db: string;
  readonly dbMode?: number | undefined;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Bearer token required from clients; needed unless `host` is on loopback. */
  readonly token: string | undefined;
  /** Origins whose pages may read the stream of changes; default: none. */
  readonly httpOrigins?: readonly string[] | undefined;
  /** The `source` of events if the mirror has not stored its own. */
  readonly source: string;
  readonly log: Logger;
  readonly limits?: Partial<StreamLimits>;
  /** To search, to evaluate the expressions of readers and to check a changed mirror in processes, so that none holds up requests; default: in this thread. */
  readonly searchApart?: Pick<SearchApartOptions, 'limits' | 'program'> | undefined;
  /** Figures of another thread, which does the work of the process; default: of this one. */
  readonly figures?: MetricsOptions['figures'];
}

/**
 * Serves the mirror over HTTP, read-only, at `url`: `http://127.0.0.1:8080`.
 * @throws CatchwordError CONFIG_INVALID, MIRROR_UNUSABLE; then nothing stays open
 */
export async function startWeb(options: WebOptions): Promise<Service & { readonly url: string }> {
  const { clock, log, token } = options;
  checkExposure(options.host, token);
  const limits = { ...STREAM_LIMITS, ...options.limits };
  const store = openStore(options.db, {
    forReading: true,
    mode: options.dbMode,
    checkContent: options.searchApart && checkApart,
  });
  const state = () => stateOf(store, clock.now(), options);
  const startedAt = clock.now();
  const mirror = { store, clock, state };
  const metrics = startMetrics({ rateLimit: options.rateLimit, mirror, figures: options.figures });
  const apart =
    options.searchApart &&
    createSearchSubprocess({ ...options.searchApart, db: store.path, source: options.source, clock });
  const here = createReadSteps(store, options.source, clock);
  const steps: Steps = apart ?? inThisThread(here);
  try {
    const app = createApp(
      log,
      'Use /api/status, /api/runs, /api/products?q=, /api/changes or /api/changes/stream; /openapi.json describes them.',
      clock,
    );
    addAuth(app, { token, clock, log, login: true, origins: options.httpOrigins });
    let stopped: Promise<void> | undefined;
    // A stream ends by itself: a standard EventSource does not survive an error status.
    app.addHook('onRequest', async (request, reply) =>
      stopped !== undefined && !isStream(request) ? sendError(reply, STOPPING) : undefined,
    );
    const waiting = addWaiting(app, { clock, log, limits });
    const changes = createChangeFeed(store, here, steps, clock, limits.pollMs);
    const readers = { changes, views: createReaderViews(steps), clock, log, limits, waiting };
    const endStreams = addDescribed(app, (to) => {
      addHealth(to, { ...options, store, state }, log);
      addApi(to, { ...options, ...readers, store, state, steps, startedAt });
      addMetrics(to, metrics);
      return addSseRoute(to, readers);
    });
    const endPages = addPages(app, { ...options, ...readers, store, state, steps, startedAt });
    const url = await listen(app, options.host, options.port);
    log.info({ address: url }, 'listening');
    const watching = watchMirror(store, clock);
    /** A client that connects from now on is refused, which a standard EventSource survives, unlike an error status. */
    const stop = async (): Promise<void> => {
      await watching.stop();
      // Not the HTTP server's own `close`: it breaks connections whose responses are written but not yet received.
      Server.prototype.close.call(app.server);
      const drained = new AbortController();
      const ended = Promise.all([endStreams(), endPages()]);
      await Promise.race([waiting.received(), clock.sleep(limits.stopMs, drained.signal)]);
      drained.abort();
      // Only now: until here, pages with `where` are read to their end.
      await apart?.stop();
      await app.close();
      await ended;
      await metrics.close();
      store.close();
    };
    return {
      name: 'web',
      url,
      failed: watching.failed,
      stop: () => {
        stopped ??= stop();
        return stopped;
      },
    };
  } catch (error) {
    await metrics.close();
    store.close();
    throw error;
  }
}
