import { CatchwordError } from '@catchword/base/errors';
import type { FetchTask, PageResponse } from '@catchword/catalog/page-types';
import { bytesOf } from '@catchword/testing/page';
import type { CatalogClient } from 'catchword-client/catalog-client';
import type { CatalogView, Shown, SimulatedCatalog } from './catalog.ts';
import type { Owner, World } from './world.ts';

/** How the source behaves; shares of requests are from 0 to 1. */
export interface SourceBehaviour {
  latencyMs: number;
  /** Latency varies by up to this factor. */
  jitter: number;
  unavailable: number;
  rateLimited: number;
  cutShort: number;
  shortPage: number;
  wrongPage: number;
  /** Share of responses with the previous page under the requested number. */
  repeatedPage: number;
  /** Share of responses with slightly wrong totals. */
  lyingTotals: number;
  /** Share of products with which no page can be answered. */
  poisoned: number;
  /** Share of requests that something in front of the source refuses. */
  refused: number;
  /** What deltas tell instead of what changed; null: what changed. */
  deltas: 'nothing' | 'everything' | null;
  /** The most that totals show; null: the number of items. */
  highestTotal: number | null;
  /** The source's own maximum page size; null: the requested size. */
  maxPageSize: number | null;
  /** Whether the list is empty, with matching totals. */
  outage: boolean;
  /** Whether responses have a `Date`. */
  dated: boolean;
  lookup: boolean;
  /** How long ago deltas show the catalog; lists and lookups are current. */
  deltaLagMs: number;
  /** How far one of two machines lags, which respond in turn. */
  replicaLagMs: number;
  /** How far each of several machines lags, which respond by chance; empty: one machine. */
  replicaLagsMs: readonly number[];
  /** How much the clock of each of these machines is ahead. */
  replicaSkewMs: number;
  /** How often the next request gets to another machine. */
  changesMachine: number;
  /** Each product's changes show in the list later by a time of its own, up to this. */
  listSpreadMs: number;
  /** Whether the total counts a product that is listed twice once. */
  countsOnce: boolean;
  /** How long a cache in front of the source keeps responses, despite request headers; 0: no cache. */
  cacheMs: number;
  /** Whether the cache sends `Age`. */
  cacheTellsAge: boolean;
  /** Whether the cache keeps the source's `Date`, or sends its own. */
  cacheKeepsDate: boolean;
}

/** No request fails, and no response is wrong. */
export const FAULTLESS = {
  unavailable: 0,
  rateLimited: 0,
  cutShort: 0,
  shortPage: 0,
  wrongPage: 0,
  repeatedPage: 0,
  lyingTotals: 0,
  poisoned: 0,
  refused: 0,
  deltas: null as SourceBehaviour['deltas'],
  highestTotal: null as number | null,
};

/** Every response shows the catalog as it is. */
export const IN_TIME = {
  deltaLagMs: 0,
  replicaLagMs: 0,
  replicaLagsMs: [] as readonly number[],
  replicaSkewMs: 0,
  changesMachine: 0,
  listSpreadMs: 0,
  countsOnce: false,
  cacheMs: 0,
  cacheTellsAge: false,
  cacheKeepsDate: true,
};

/** A request; its time is by the world's clock. */
export interface SimulatedRequest {
  readonly owner: Owner;
  readonly runId: number;
  readonly pass: number;
  readonly at: number;
}

/** A page of the list, as a process got it. */
export interface SimulatedPage {
  readonly task: FetchTask;
  readonly text: string;
}

/** What the processes select, and what the source adds to products that the mirror ignores. */
export interface Dress {
  currency: string;
  readonly noisy: boolean;
}

export type SimulatedSource = ReturnType<typeof createSimulatedSource>;

/** A product as the source shows it, with an ignored member or without. */
export function bodyOf({ id, version, withdrawn }: Shown, { currency }: Pick<Dress, 'currency'>, noise = ''): string {
  const more = `${withdrawn ? ',"distributable":false' : ''}${currency === '' ? '' : `,"currency":"${currency}"`}${noise}`;
  return `{"vbid":"P${id}","version":${version},"title":"Book ${id}"${more}}`;
}

export function createSimulatedSource(
  world: World,
  catalog: SimulatedCatalog,
  behaviour: SourceBehaviour,
  sourceNow: () => number,
  onRequest: () => void,
  {
    dress = { currency: '', noisy: false },
    wallTimeOf = (ms) => ms,
  }: { readonly dress?: Dress; readonly wallTimeOf?: (ms: number) => number } = {},
) {
  const requests: SimulatedRequest[] = [];
  const pages: SimulatedPage[] = [];

  function strikes(share: number): boolean {
    return share > 0 && world.random() < share;
  }

  function refused(): CatchwordError | null {
    if (strikes(behaviour.refused)) return new CatchwordError('SOURCE_NOT_SERVICE', 'simulated 404', { status: 404 });
    if (strikes(behaviour.unavailable)) return new CatchwordError('SOURCE_UNAVAILABLE', 'simulated 503');
    if (strikes(behaviour.rateLimited)) {
      return new CatchwordError('SOURCE_RATE_LIMITED', 'simulated 429', { retryAfterMs: 5_000 });
    }
    return strikes(behaviour.cutShort) ? new CatchwordError('SOURCE_BODY', 'simulated reset') : null;
  }

  let turn = 0;
  let machine = 0;
  /** The machine that responds. */
  function viewFor({ from }: FetchTask): CatalogView {
    const { replicaLagsMs, listSpreadMs } = behaviour;
    if (replicaLagsMs.length > 0) {
      if (strikes(behaviour.changesMachine)) machine = Math.floor(world.random() * replicaLagsMs.length);
      const lagMs = replicaLagsMs[machine] ?? 0;
      return lagMs === 0 ? catalog : catalog.behind(lagMs);
    }
    if (listSpreadMs > 0 && from === null) return catalog.behind(0, listSpreadMs);
    if (behaviour.replicaLagMs > 0 && turn++ % 2 === 1) return catalog.behind(behaviour.replicaLagMs);
    return behaviour.deltaLagMs > 0 && from !== null ? catalog.behind(behaviour.deltaLagMs) : catalog;
  }

  function body(product: Shown): string {
    const noise = dress.noisy ? `,"shown":${Math.floor(world.random() * 1e6)}` : '';
    return bodyOf(product, dress, noise);
  }

  const kept = new Map<string, { readonly text: string; readonly dateMs: number; readonly at: number }>();
  /** The cached response to this request, unless it is too old. */
  function cached({ window, from, vbid }: FetchTask, respond: () => string) {
    const key = JSON.stringify([window, from, vbid, dress.currency]);
    const found = kept.get(key);
    if (found !== undefined && world.now() - found.at <= behaviour.cacheMs) return found;
    const text = respond();
    const made = { text, dateMs: sourceNow() + machine * behaviour.replicaSkewMs, at: world.now() };
    if (behaviour.cacheMs > 0) kept.set(key, made);
    return made;
  }

  function pageText(task: FetchTask): string {
    const { window, from } = task;
    const catalog = viewFor(task);
    const perPage = Math.min(window.perPage, behaviour.maxPageSize ?? window.perPage);
    const page = strikes(behaviour.wrongPage) ? window.page + 1 : window.page;
    const read = strikes(behaviour.repeatedPage) && page > 1 ? page - 1 : page;
    const offset = (read - 1) * perPage;
    const { deltas } = behaviour;
    const told = deltas === 'everything' ? catalog.list(0, Number.MAX_SAFE_INTEGER) : [];
    const changed = from === null ? null : deltas === null ? catalog.changedSince(wallTimeOf(from)) : told;
    const listed = behaviour.outage ? [] : catalog.list(offset, perPage);
    const items = changed === null ? listed : changed.slice(offset, offset + perPage);
    const listSize = behaviour.countsOnce ? catalog.living.size : catalog.count();
    const poison = items.find(({ id }) => (id * 7_919) % 1_000 < 1_000 * behaviour.poisoned);
    if (poison !== undefined) throw new CatchwordError('SOURCE_UNAVAILABLE', 'simulated 500', { status: 500 });
    const found = changed?.length ?? (behaviour.outage ? 0 : listSize);
    const size = Math.min(found, behaviour.highestTotal ?? found);
    const total = strikes(behaviour.lyingTotals) ? Math.max(0, size + Math.floor(world.random() * 7) - 3) : size;
    if (strikes(behaviour.shortPage)) items.splice(items.length - Math.ceil(items.length / 10));
    const totals = `"num_items":${total},"page":${page},"per_page":${perPage},"total_pages":${Math.ceil(total / perPage)}`;
    return `{${totals},"items":[${items.map(body).join(',')}]}`;
  }

  function lookupText(task: FetchTask, vbid: string): string {
    const id = Number(vbid.slice(1));
    const catalog = viewFor(task);
    const product = catalog.living.get(id) ?? catalog.withdrawn.get(id);
    return product === undefined ? '' : body(product);
  }

  function clientFor(owner: Owner, onStep: (point: string) => void): CatalogClient {
    const clock = world.clockOf(owner);
    async function read(task: FetchTask, signal: AbortSignal): Promise<PageResponse> {
      onStep('request');
      requests.push({ owner, runId: task.runId, pass: task.pass, at: world.now() });
      onRequest();
      const requestedAt = clock.now();
      const askedAt = world.now();
      // The response shows the catalog as of the arrival of the request.
      const error = refused();
      const { vbid } = task;
      const shown = cached(task, () => (vbid === undefined ? pageText(task) : lookupText(task, vbid)));
      const { text } = shown;
      const delayMs = behaviour.latencyMs * (1 + world.random() * behaviour.jitter);
      await clock.sleep(delayMs, signal);
      const ageMs = Math.floor((world.now() - shown.at) / 1000) * 1000;
      const isOld = shown.at < askedAt && behaviour.cacheKeepsDate;
      const ownMs = sourceNow() + machine * behaviour.replicaSkewMs;
      const dateMs = Math.floor((isOld ? shown.dateMs : ownMs) / 1000) * 1000;
      const { window } = task;
      const asked = task.vbid ?? `${window.page}x${window.perPage}`;
      world.trace(`${owner.name} read ${task.pass}:${asked} ${error?.code ?? text.length}`);
      if (error !== null) throw error;
      if (task.from === null && vbid === undefined) pages.push({ task, text });
      onStep('response');
      const sourceTime = behaviour.dated ? dateMs : null;
      const age = behaviour.cacheTellsAge && shown.at < askedAt ? { ageMs } : {};
      return { body: bytesOf(text), sourceTime, requestedAt, receivedAt: clock.now(), ...age };
    }
    return { read, close: async () => {} };
  }

  return { requests, pages, clientFor };
}
