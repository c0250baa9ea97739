import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isLoopback } from '../../base/loopback.ts';
import { isPrivateLiteral, publicLookup } from '../../base/public-address.ts';
import type { SandboxOptions } from '../options.ts';
import { type Asset, buildStatusOf } from './kept-asset.ts';

const TIMEOUT_MS = 10_000;

type Options = Pick<SandboxOptions, 'clock' | 'allowPrivateCallbacks'>;

/** Whether a URL shows by itself that its address is private. Names are checked when they are looked up. @rule 6-1 */
function isPrivateUrl(url: string): boolean {
  const host = new URL(url).hostname.replace(/\.$/, '');
  return isPrivateLiteral(host) || isLoopback(host) || host.endsWith('.localhost');
}

const lookupPublic = publicLookup((hostname) => new Error(`${hostname} is a private address`));

/** POSTs JSON, without following redirects. Resolves when there is a reply, or cannot be one. */
export function callBack(url: string, body: string, allowPrivate: boolean, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const send = url.toLowerCase().startsWith('https:') ? httpsRequest : httpRequest;
    const call = send(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) },
      signal,
      timeout: TIMEOUT_MS,
      agent: false,
      ...(!allowPrivate && { lookup: lookupPublic }),
    });
    call.on('timeout', () => call.destroy());
    call.on('response', (response) => response.resume());
    call.on('error', () => {});
    call.on('close', resolve);
    call.end(body);
  });
}

/**
 * Interface, section 6. Method, payload and retries are not shown there. Here: one POST of
 * `{"vbid":"…","status":"approved"}`, or `failed` for a file that is neither EPUB nor PDF.
 * @rule 2.1-38..39, 4.1-10, 6-1..2
 */
export function createIngestions({ clock, allowPrivateCallbacks: allowPrivate }: Options, signal: AbortSignal) {
  const running = new Set<Promise<void>>();
  let started = false;

  async function call(asset: Asset, url: string, endsAt: number): Promise<void> {
    const body = JSON.stringify({ vbid: asset.vbid, status: buildStatusOf(asset, endsAt) });
    // Stopping the sandbox interrupts the wait.
    await clock.sleep(Math.max(0, endsAt - clock.now()), signal).catch(() => {});
    if (!signal.aborted) await callBack(url, body, allowPrivate, signal);
  }

  return {
    /** Whether a URL may be called. What the journal repeats was accepted, with the options of that time. */
    mayCall: (url: string): boolean => allowPrivate || !started || !isPrivateUrl(url),
    /** Plans the call of an asset's `callback_url` for the end of its ingestion. What the journal repeats is not called. */
    announce: (asset: Asset): void => {
      const { callbackUrl = null, endsAt = 0 } = asset.ingestion ?? {};
      if (!started || callbackUrl === null) return;
      const calling = call(asset, callbackUrl, endsAt).finally(() => running.delete(calling));
      running.add(calling);
    },
    start: (): void => {
      started = true;
    },
    settled: () => Promise.all(running),
  };
}
