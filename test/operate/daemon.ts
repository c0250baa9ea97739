import type { Clock } from '@catchword/base/clock';
import { type Service, stopAll } from '@catchword/base/lifecycle';
import { pino } from 'pino';
import { expect, onTestFinished } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { startDaemon } from '../../src/cli/roles/roles.ts';
import { hastyClock, until } from '../../src/contract/harness.ts';
import type { ActionRow } from '../../src/store/rows/decision-rows.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { load } from '../support/load.ts';
import { type Place, place } from '../support/place.ts';

/** Settings of a daemon that starts no run by itself once its mirror is filled, and serves HTTP. */
export const QUIET = { CATCHWORD_FULL_CRON: 'off', CATCHWORD_DELTA_CRON: 'off', CATCHWORD_HTTP_PORT: '0' };

/** A mirror whose run 2 holds 20 removals. */
export async function held(more: Record<string, string> = {}, latencyMs = 0): Promise<Place> {
  const here = await place({ items: 60, withdrawnForMs: 0, latencyMs }, { CATCHWORD_REMOVAL_LIMIT: '1', ...more });
  await load(here.settings, 'full');
  here.sandbox.catalog.mutate({ remove: 20, seed: 1 });
  expect(await load(here.settings, 'full')).toMatchObject({ id: 2, state: 'held', missing: 20 });
  return here;
}

interface Line {
  readonly msg: string;
  readonly address?: string;
}

/** Starts a daemon in this process, whose short pauses are shorter. */
export async function daemonHere(settings: Record<string, string>, clock: Clock = hastyClock) {
  const lines: Line[] = [];
  const log = pino({ level: 'trace' }, { write: (text: string) => void lines.push(JSON.parse(text) as Line) });
  const services: Service[] = [];
  await startDaemon({ config: checkedSettings({ ...settings, ...QUIET }, 'source'), clock, log }, services);
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= stopAll(services);
    return stopped;
  };
  onTestFinished(stop);
  return { url: lines.find(({ msg }) => msg === 'listening')?.address ?? '', lines, stop };
}

/** Opens the mirror, as other processes do. */
export function reading(db: string): Store {
  const store = openStore(db);
  onTestFinished(() => store.close());
  return store;
}

type Fields = Readonly<Record<string, string>>;

/** Sends a form, as the page does. */
export async function post(url: string, fields: Fields | [string, string][], headers: Fields = {}): Promise<Response> {
  const body = new URLSearchParams(fields);
  return await fetch(`${url}/actions`, {
    method: 'POST',
    body,
    redirect: 'manual',
    headers: { origin: url, referer: `${url}/runs/2?all`, ...headers },
  });
}

/** Sends a decision of the page, and waits until it has ended. */
export async function decideOn(store: Store, url: string, fields: Fields): Promise<ActionRow> {
  const response = await post(url, fields);
  expect(response.status, await response.text()).toBe(303);
  return await endOf(store, store.actions.list(1)[0]?.id ?? 0);
}

/** Decides on the page, and reads the mirror. */
export function pageAt(db: string, url: string) {
  const store = reading(db);
  return {
    url,
    store,
    /** Sends a decision. @returns its state and its outcome, once it has ended */
    decided: async (action: string, target: string, argument?: string) => {
      const fields = { action, target, ...(argument !== undefined && { argument }) };
      const { state, outcome } = await decideOn(store, url, fields);
      return [state, outcome];
    },
  };
}

/** A daemon in this process, and its page. */
export async function daemonOn({ db, settings }: Place, more: Record<string, string> = {}) {
  const { url } = await daemonHere({ ...settings, ...more });
  return pageAt(db, url);
}

/** Waits until a decision has ended. */
export async function endOf(store: Store, id: number): Promise<ActionRow> {
  await until(`decision ${id} has ended`, () => store.actions.get(id)?.state !== 'asked');
  const row = store.actions.get(id);
  if (row === undefined) throw new Error(`decision ${id} is lost`);
  return row;
}
