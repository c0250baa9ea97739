import { channel } from 'node:diagnostics_channel';

/**
 * What a process does, for those who measure it. Durations are milliseconds. Publishing costs almost nothing as long as
 * nothing has subscribed, so that no part of the pipeline knows whether it is measured.
 */
export interface Measures {
  /** A request to the service has ended. `outcome`: `ok`, or the code of its error. */
  readonly request: { readonly outcome: string; readonly ms: number };
  /** One transaction has applied pages. */
  readonly applied: { readonly ms: number };
  /** Number of pages that were asked for and have not arrived. */
  readonly queue: { readonly pages: number };
}

const CHANNELS: { readonly [K in keyof Measures]: ReturnType<typeof channel> } = {
  request: channel('catchword:request'),
  applied: channel('catchword:applied'),
  queue: channel('catchword:queue'),
};

export function publish<K extends keyof Measures>(name: K, measure: Measures[K]): void {
  if (CHANNELS[name].hasSubscribers) CHANNELS[name].publish(measure);
}

/** @returns a function that ends the subscription */
export function subscribe<K extends keyof Measures>(name: K, take: (measure: Measures[K]) => void): () => void {
  const listener = (measure: unknown): void => take(measure as Measures[K]);
  CHANNELS[name].subscribe(listener);
  return () => CHANNELS[name].unsubscribe(listener);
}

/** A measure that another thread has made. */
export type Measured = {
  readonly [K in keyof Measures]: { readonly name: K; readonly measure: Measures[K] };
}[keyof Measures];

/** Passes on every measure of this thread. @returns a function that ends it */
export function forwardMeasures(pass: (measured: Measured) => void): () => void {
  const names = Object.keys(CHANNELS) as (keyof Measures)[];
  const ends = names.map((name) => subscribe(name, (measure) => pass({ name, measure } as Measured)));
  return () => {
    for (const end of ends) end();
  };
}

/** Publishes a measure of another thread in this one. */
export function republish({ name, measure }: Measured): void {
  publish(name, measure);
}
