import { channel } from 'node:diagnostics_channel';

/** What a process does, for those who measure it. Durations are milliseconds. */
export type Measure =
  /** A request to the service has ended. `outcome`: `ok`, or the code of its error. */
  | { readonly of: 'request'; readonly outcome: string; readonly ms: number }
  /** One transaction has applied pages. */
  | { readonly of: 'apply'; readonly ms: number }
  /** Number of pages that were asked for and have not arrived. */
  | { readonly of: 'queue'; readonly pages: number }
  /** The HTTP server has closed a connection that had no request. */
  | { readonly of: 'connection'; readonly why: string };

const MEASURES = channel('catchword:measures');

/** Costs almost nothing as long as nothing has subscribed, so that no part of the pipeline knows whether it is measured. */
export function publish(measure: Measure): void {
  if (MEASURES.hasSubscribers) MEASURES.publish(measure);
}

/** @returns a function that ends the subscription */
export function subscribe(take: (measure: Measure) => void): () => void {
  const listener = (measure: unknown): void => take(measure as Measure);
  MEASURES.subscribe(listener);
  return () => MEASURES.unsubscribe(listener);
}
