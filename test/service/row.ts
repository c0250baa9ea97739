import { readFileSync } from 'node:fs';
import type { Client } from '../../src/client/client.ts';
import type { SandboxOptions } from '../../src/sandbox/options.ts';

/*
 * The tables of this folder are the interface as exchanges: a request, the reply of the service, and what a caller gets.
 * They are written by hand from docs/dev/interface.md. service.test.ts sends each request to the sandbox, which must give
 * the reply, and gives each reply to the client, which must send the request and return the value. So neither side is
 * tested against the other one. Some requests are never sent by the client, and some replies are only known from live
 * services: these rows are for one side.
 */

/** Who asks; the owner unless it says more. Null: without this header. */
export interface Caller {
  /** Default: SANDBOXKEY. */
  readonly key?: string | null;
  /** Default: sandboxtoken. Only operations of a user are sent it. */
  readonly token?: string | null;
  /** The status of the reply. Default: 200. */
  readonly status?: number;
}

/** An operation, its body (a text is sent unchanged, anything else as JSON), and who asks. */
export type Ask = readonly [operation: `${'GET' | 'POST' | 'PUT' | 'DELETE'} /${string}`, body?: unknown, by?: Caller];

export interface Row extends Caller {
  /** The rules that it shows: `2.1-4, 2.1-7..9`. */
  readonly rules: string;
  readonly says: string;
  /** Requests before it: operations of the interface, or controls of the sandbox (`/_sandbox/grant`). */
  readonly given: readonly Ask[];
  readonly asks: Ask;
  /** A text is sent unchanged; of an object, the reply may have more members than these. */
  readonly reply: unknown;
  /** The content type of the reply. Default: by the operation, and XML if the reply begins with `<`. */
  readonly type?: string;
  /** Elements of the reply whose values the service generates. */
  readonly generated?: readonly string[];
  /** Options of the sandbox. Null: no sandbox gives this reply, but a live service may. */
  readonly sandbox?: Partial<SandboxOptions> | null;
  /** The call of the client that sends the request; null: the client never sends it. Default: by the operation. */
  readonly call?: ((client: Client) => Promise<unknown>) | null;
  /** Members of what the call returns. Default: all that the reply has is in `raw`. */
  readonly makes?: unknown;
  /** Members of the error that it throws; a regular expression describes a text. Default: by the status. */
  readonly fails?: Readonly<Record<string, unknown>>;
  /** Texts that the error must not show. */
  readonly secrets?: readonly string[];
  /** Which of several rows that say the same. */
  readonly example?: string;
}

/**
 * @param title the rules, a colon, and what the exchange shows
 * @param asks the request, behind those that come before it
 */
export function row(title: string, asks: readonly Ask[], reply: unknown, more: Partial<Row> = {}): Row {
  const [, rules = '', says = ''] = /^([^:]+): (.+)$/.exec(title) ?? [];
  const last = asks.at(-1);
  if (says === '' || last === undefined) throw new Error(`not a row: ${title}`);
  return { rules, says, given: asks.slice(0, -1), asks: last, reply, ...last[2], ...more };
}

/** A reply of a live service, and what the client makes of it. */
type Example<T> = readonly [reply: unknown, outcome: T, more?: Partial<Row>];

/** Replies that the client reads. */
export function reads(title: string, ask: Ask, examples: readonly Example<unknown>[], common?: Partial<Row>): Row[] {
  return examples.map(([reply, makes, more]) => ({
    ...row(title, [ask], reply, { makes, ...common, ...more }),
    sandbox: null,
    example: typeof reply === 'string' ? reply.slice(0, 80) : JSON.stringify(reply).slice(0, 80),
  }));
}

/** Replies that are errors: each with the code, the code of the service, or members of the error. */
export function refuses(
  title: string,
  ask: Ask,
  examples: readonly Example<string | number | Readonly<Record<string, unknown>>>[],
  common: Partial<Row> = {},
): Row[] {
  return reads(
    title,
    ask,
    examples.map(([reply, fails, more]) => {
      const members =
        typeof fails === 'string' ? { code: fails } : typeof fails === 'number' ? { serviceCode: fails } : fails;
      return [reply, undefined, { fails: { ...common.fails, ...members }, ...more }];
    }),
    { ...common, makes: undefined },
  );
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
