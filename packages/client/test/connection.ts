import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Clock, systemClock } from '@catchword/base/clock';
import { CatchwordError, toErrorRecord } from '@catchword/base/errors';
import type { Pacer } from '@catchword/pace/pacer';
import { serveHttp } from '@catchword/testing/listen';
import { type CatalogClient, createCatalogClient } from 'catchword-client/catalog-client';
import { type Connection, type ConnectionSettings, connect } from 'catchword-client/client-connection';
import { expect, onTestFinished } from 'vitest';
import { checkedSettings } from '../../../src/cli/commands/shared/checked-settings.ts';

export const KEY = 'KEYTHATMUSTNOTSHOW';
export const TOKEN = 'tokenthatmustnotshow';
export const NEVER = new AbortController().signal;
export const XML_TYPE = 'application/xml; charset=utf-8';

/** A message of the interface that client and sandbox share. */
export function golden(name: string): string {
  return readFileSync(new URL(`../../../test/golden/${name}`, import.meta.url), 'utf8').trimEnd();
}

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
}

export interface Server {
  readonly url: string;
  readonly asked: Asked[];
}

/** A server that answers with `reply` until the test ends. */
export async function serve(
  reply: (asked: Asked, index: number, response: ServerResponse) => Reply | string | null,
): Promise<Server> {
  const asked: Asked[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url = '', headers } = request;
    const one = { method, url, headers, body: await text(request) };
    const answered = reply(one, asked.push(one) - 1, response);
    // Null: `reply` has answered itself, or never will.
    if (answered === null) return;
    const { status = 200, headers: more, body } = typeof answered === 'string' ? { body: answered } : answered;
    response.writeHead(status, { 'content-type': XML_TYPE, ...more }).end(body);
  };
  return { url: await serveHttp((request, response) => void answer(request, response)), asked };
}

/** A clock that jumps ahead instead of waiting. */
export function hastyClock(): Clock {
  let now = Date.now();
  return {
    now: () => now,
    sleep: async (ms) => {
      now += ms;
    },
    random: () => 0.5,
  };
}

export function settingsOf(url: string, more: Partial<ConnectionSettings> = {}): ConnectionSettings {
  return {
    baseUrl: url,
    apiKey: KEY,
    accessToken: TOKEN,
    apiKeyHeader: 'X-Key',
    accessTokenHeader: 'X-Token',
    requestTimeoutMs: 10_000,
    concurrency: 4,
    usersSuffix: '.xml',
    userReference: undefined,
    tokenStore: undefined,
    ...more,
  };
}

export function connectTo(url: string, more: Partial<ConnectionSettings> = {}, clock = hastyClock()): Connection {
  const connection = connect(settingsOf(url, more), null, clock);
  onTestFinished(() => connection.close());
  return connection;
}

/** The catalog client of the mirror, until the test ends. */
export function mirrorClient(url: string, more: Readonly<Record<string, string>> = {}, pacer?: Pacer): CatalogClient {
  const given = { CATCHWORD_BASE_URL: url, CATCHWORD_API_KEY: KEY, CATCHWORD_ACCESS_TOKEN: TOKEN, ...more };
  const client = createCatalogClient(checkedSettings(given, 'source'), systemClock, pacer);
  onTestFinished(() => client.close());
  return client;
}

/** The first page, as the mirror asks for it. */
export const TASK = { mirror: '', runId: 0, pass: 0, window: { page: 1, perPage: 1 }, from: null, maxAttempts: 1 };

/** The error of a request, after checking that it does not show secrets. */
export async function failure(asked: Promise<unknown>, ...secrets: string[]): Promise<CatchwordError> {
  const error = await asked.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof CatchwordError)) throw new Error(`not a CatchwordError: ${String(error)}`);
  const shown = [error.message, error.hint, error.stack, JSON.stringify(error), JSON.stringify(toErrorRecord(error))];
  for (const secret of [KEY, TOKEN, ...secrets])
    expect([...shown, String(error.cause)].join('\n')).not.toContain(secret);
  return error;
}
