import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { messageOf } from '@catchword/base/errors';
import { isLoopback } from '@catchword/base/loopback';
import { isPrivateLiteral, publicLookup } from '@catchword/base/public-address';
import type { SandboxOptions } from '../options.ts';
import { type Asset, buildStatusOf, type Ingestion } from './kept-asset.ts';

const MAX_CALLS = 4;
const TIMEOUT_MS = 10_000;

/** Identifies a callback: an asset may be ingested several times. `startedAt`: milliseconds since 1970. */
type PlannedCall = Pick<Asset, 'vbid'> & Pick<Ingestion, 'startedAt'>;

type Options = Pick<SandboxOptions, 'clock' | 'callbackRetryMs' | 'allowPrivateCallbacks'>;

/** Whether a URL shows by itself that its address is private. Names are checked when they are looked up. @rule 6-1 */
function isPrivateUrl(url: string): boolean {
  const host = new URL(url).hostname.replace(/\.$/, '');
  return isPrivateLiteral(host) || isLoopback(host) || host.endsWith('.localhost');
}

const lookupPublic = publicLookup((hostname) => new Error(`${hostname} is a private address`));

/** POSTs JSON, without following redirects. @returns whether the reply has a 2xx status */
export function callBack(url: string, body: string, allowPrivate: boolean, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (!allowPrivate && isPrivateUrl(url)) return resolve(false);
    const send = url.toLowerCase().startsWith('https:') ? httpsRequest : httpRequest;
    const call = send(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) },
      signal,
      timeout: TIMEOUT_MS,
      agent: false,
      ...(!allowPrivate && { lookup: lookupPublic }),
    });
    call.on('timeout', () => call.destroy(new Error('no reply in time')));
    call.on('error', () => resolve(false));
    call.on('response', (response) => {
      const { statusCode = 500 } = response;
      response.resume();
      resolve(statusCode >= 200 && statusCode < 300);
    });
    call.end(body);
  });
}

/**
 * Interface, section 6. Method, payload and retries are not shown there. Here: POST of
 * `{"vbid":"…","status":"approved"}`, or `failed` for a file that is neither EPUB nor PDF.
 * @param done runs when the address has answered, or has failed too often
 * @rule 2.1-38..39, 4.1-10, 6-1..2
 */
export function createIngestions(options: Options, signal: AbortSignal, done: (call: PlannedCall) => void) {
  const { clock, callbackRetryMs, allowPrivateCallbacks: allowPrivate } = options;
  const running = new Set<Promise<void>>();
  const waiting = new Map<string, () => void>();
  let started = false;
  const keyOf = ({ vbid, startedAt }: PlannedCall) => `${startedAt} ${vbid}`;

  async function call(asset: Asset, url: string, { startedAt, endsAt }: Ingestion): Promise<void> {
    const { vbid } = asset;
    const body = JSON.stringify({ vbid, status: buildStatusOf(asset, endsAt) });
    try {
      await clock.sleep(Math.max(0, endsAt - clock.now()), signal);
      for (let calls = 1; !(await callBack(url, body, allowPrivate, signal)) && calls < MAX_CALLS; calls++) {
        await clock.sleep(callbackRetryMs * 2 ** (calls - 1), signal);
      }
      if (!signal.aborted) done({ vbid, startedAt });
    } catch (error) {
      // Stopping the sandbox interrupts a wait. Any other error has no caller to report to.
      if (!signal.aborted) process.emitWarning(`callback_url of ${vbid}: ${messageOf(error)}`);
    }
  }

  return {
    /** Whether a URL may be called. What the journal repeats was accepted, with the options of that time. */
    mayCall: (url: string): boolean => allowPrivate || !started || !isPrivateUrl(url),
    /** Plans the call of an asset's `callback_url` for the end of its ingestion. */
    announce: (asset: Asset): void => {
      const { vbid, ingestion } = asset;
      const url = ingestion?.callbackUrl ?? null;
      if (ingestion === null || url === null) return;
      const start = () => {
        const calling = call(asset, url, ingestion).finally(() => running.delete(calling));
        running.add(calling);
      };
      if (started) start();
      else waiting.set(keyOf({ vbid, startedAt: ingestion.startedAt }), start);
    },
    /** Removes a call that was made already. Before `start`. */
    forget: (planned: PlannedCall): void => {
      waiting.delete(keyOf(planned));
    },
    start: (): void => {
      started = true;
      for (const start of waiting.values()) start();
      waiting.clear();
    },
    settled: () => Promise.all(running),
  };
}
