import { readFileSync } from 'node:fs';
import type { Client } from '../../src/client/client.ts';

/*
 * The tables of this folder are the interface as exchanges: a request, the reply of the service, and what a caller gets.
 * They are written by hand from docs/dev/interface.md. service.test.ts sends each request to the sandbox, which must give
 * the reply, and gives each reply to the client, which must send the request and return the value. So neither side is
 * tested against the other one.
 */

/** An operation and its body: a text is sent unchanged, anything else as JSON. */
export type Ask = readonly [operation: `${'GET' | 'POST' | 'PUT' | 'DELETE'} /${string}`, body?: unknown];

export interface Row {
  /** The rules that it shows: `2.1-4, 2.1-7..9`. */
  readonly rules: string;
  readonly says: string;
  /** Requests before it: operations of the interface, or controls of the sandbox (`/_sandbox/grant`). */
  readonly given: readonly Ask[];
  readonly asks: Ask;
  /** A text is XML, or nothing; of an object, the reply may have more members than these. */
  readonly reply: unknown;
  /** Default: 200. */
  readonly status?: number;
  /** The API key of the caller. Default: SANDBOXKEY. */
  readonly key?: string;
  /** The access token, which only operations of a user are sent. Default: sandboxtoken. */
  readonly token?: string;
  /** Elements of the reply whose values the service generates. */
  readonly generated?: readonly string[];
  /** The call of the client that sends the request; null: the client never sends it. Default: by the operation. */
  readonly call?: ((client: Client) => Promise<unknown>) | null;
  /** Members of what the call returns. Default: all that the reply has is in `raw`. */
  readonly makes?: unknown;
  /** Members of the error that it throws; a regular expression describes a text. Default: by the status. */
  readonly fails?: Readonly<Record<string, unknown>>;
}

/**
 * @param title the rules, a colon, and what the exchange shows
 * @param asks the request, behind those that come before it
 */
export function row(title: string, asks: readonly Ask[], reply: unknown, more: Partial<Row> = {}): Row {
  const [, rules = '', says = ''] = /^([^:]+): (.+)$/.exec(title) ?? [];
  const last = asks.at(-1);
  if (says === '' || last === undefined) throw new Error(`not a row: ${title}`);
  return { rules, says, given: asks.slice(0, -1), asks: last, reply, ...more };
}

/** A value that the service generates: the reply has another one of the same form. */
export class Sample {
  readonly value: unknown;
  readonly form: RegExp;
  constructor(value: unknown, form: RegExp) {
    this.value = value;
    this.form = form;
  }
}

export const like = (value: unknown, form: RegExp): Sample => new Sample(value, form);
export const TIME = like('2030-01-02T03:04:05.678Z', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
export const NUMBER = like(71, /^\d+$/);

/** Replaces each sample in a reply. */
export function withSamples(reply: unknown, replace: (sample: Sample) => unknown): unknown {
  if (reply instanceof Sample) return replace(reply);
  if (Array.isArray(reply)) return reply.map((one) => withSamples(one, replace));
  if (typeof reply !== 'object' || reply === null) return reply;
  return Object.fromEntries(Object.entries(reply).map(([name, value]) => [name, withSamples(value, replace)]));
}

/** A message of the interface that was written by hand, to the byte. */
export function golden(name: string): string {
  return readFileSync(new URL(`../golden/${name}.xml`, import.meta.url), 'utf8').trimEnd();
}
