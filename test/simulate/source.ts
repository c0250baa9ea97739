import type { FetchTask, PageResponse } from '../../src/catalog/page.ts';
import type { CatalogClient } from '../../src/client/client.ts';
import { CatchwordError } from '../../src/errors.ts';
import type { Shown, SimulatedCatalog } from './catalog.ts';
import type { Owner, World } from './world.ts';

/** How the source behaves; shares are of requests, 0 to 1. */
export interface SourceBehaviour {
  latencyMs: number;
  /** Latency varies up to so many times. */
  jitter: number;
  unavailable: number;
  rateLimited: number;
  cutShort: number;
  shortPage: number;
  wrongPage: number;
  /** The page before, under the number that was asked for. */
  repeatedPage: number;
  /** Totals that are a little off. */
  lyingTotals: number;
  /** The source answers at most so many a page; null: what is asked. */
  answeredSize: number | null;
  /** The listing is empty, and says so. */
  outage: boolean;
  /** Whether answers carry a `Date`. */
  dated: boolean;
  lookup: boolean;
}

export interface SimulatedSource {
  readonly behaviour: SourceBehaviour;
  clientFor(owner: Owner, onStep: (point: string) => void): CatalogClient;
  /** When requests were made, by process; the world's clock. */
  readonly requests: { readonly owner: Owner; readonly at: number }[];
}

export function bodyOf({ id, version, withdrawn }: Shown): string {
  const more = withdrawn ? ',"distributable":false' : '';
  return `{"vbid":"P${id}","version":${version},"title":"Book ${id}"${more}}`;
}

export function createSimulatedSource(
  world: World,
  catalog: SimulatedCatalog,
  behaviour: SourceBehaviour,
  sourceNow: () => number,
  onRequest: () => void,
): SimulatedSource {
  const requests: { owner: Owner; at: number }[] = [];

  function strikes(share: number): boolean {
    return share > 0 && world.random() < share;
  }

  function refused(): CatchwordError | null {
    if (strikes(behaviour.unavailable)) return new CatchwordError('SOURCE_UNAVAILABLE', 'simulated 503');
    if (strikes(behaviour.rateLimited)) {
      return new CatchwordError('SOURCE_RATE_LIMITED', 'simulated 429', { retryAfterMs: 5_000 });
    }
    return strikes(behaviour.cutShort) ? new CatchwordError('SOURCE_BODY', 'simulated reset') : null;
  }

  function pageText({ window, from }: FetchTask): string {
    const perPage = Math.min(window.perPage, behaviour.answeredSize ?? window.perPage);
    const page = strikes(behaviour.wrongPage) ? window.page + 1 : window.page;
    const read = strikes(behaviour.repeatedPage) && page > 1 ? page - 1 : page;
    const offset = (read - 1) * perPage;
    const changed = from === null ? null : catalog.changedSince(from);
    const listed = behaviour.outage ? [] : catalog.list(offset, perPage);
    const items = changed === null ? listed : changed.slice(offset, offset + perPage);
    const size = changed === null ? (behaviour.outage ? 0 : catalog.size) : changed.length;
    const total = strikes(behaviour.lyingTotals) ? Math.max(0, size + Math.floor(world.random() * 7) - 3) : size;
    if (strikes(behaviour.shortPage)) items.splice(items.length - Math.ceil(items.length / 10));
    const totals = `"num_items":${total},"page":${page},"per_page":${perPage},"total_pages":${Math.ceil(total / perPage)}`;
    return `{${totals},"items":[${items.map(bodyOf).join(',')}]}`;
  }

  function lookupText(vbid: string): string {
    const id = Number(vbid.slice(1));
    const product = catalog.living.get(id) ?? catalog.withdrawn.get(id);
    return product === undefined ? '' : bodyOf(product);
  }

  function clientFor(owner: Owner, onStep: (point: string) => void): CatalogClient {
    const clock = world.clockOf(owner);
    async function read(task: FetchTask, signal: AbortSignal): Promise<PageResponse> {
      onStep('request');
      requests.push({ owner, at: world.now() });
      onRequest();
      const requestedAt = clock.now();
      // The moment that is answered of is the one at which the request came in.
      const error = refused();
      const text = task.vbid === undefined ? pageText(task) : lookupText(task.vbid);
      const delayMs = behaviour.latencyMs * (1 + world.random() * behaviour.jitter);
      await clock.sleep(delayMs, signal);
      const dateMs = Math.floor(sourceNow() / 1000) * 1000;
      const { window } = task;
      const asked = task.vbid ?? `${window.page}x${window.perPage}`;
      world.trace(`${owner.name} read ${task.pass}:${asked} ${error?.code ?? text.length}`);
      if (error !== null) throw error;
      onStep('response');
      const sourceTime = behaviour.dated ? dateMs : null;
      return { text, sourceTime, requestedAt, receivedAt: clock.now(), bytes: text.length };
    }
    return { read, close: async () => {} };
  }

  return { behaviour, requests, clientFor };
}
