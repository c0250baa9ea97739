import { readFileSync } from 'node:fs';
import type { SandboxOptions } from '@catchword/sandbox/options';
import { expect } from 'vitest';

/*
 * The tables of this folder are the interface as exchanges: a request, the reply of the service, and what a caller gets.
 * They are written by hand from docs/dev/interface.md. service.test.ts sends each request to the sandbox, which must give
 * the reply, and gives each reply to the client, which must send the request and return the value. So neither side is
 * tested against the other one. Some requests are never sent by the client, and some replies are only known from live
 * services: these are for one side. The lines of a row (values that are not texts are written into them as JSON):
 *
 *     4.1-9, 7-3: what it shows, behind the rules
 *     + 422 PUT /v4/assets/L-1 {"edition":"x"}      before it, with a status that is not 200; also controls of the sandbox
 *     > GET /vital_books/L-1 by OTHERKEY token      the request: by another caller than the owner; - is none
 *     >! GET /v4/products?page=x                    the request, if the client never sends it
 *     < 404 {"errors":["Book not found"]} => CODE   the reply, and what the client makes of it
 *     ~ 200 text/plain gone => CODE "in its text"   a reply of live services, for the client alone; any number of them
 *     with {"items":1}                              options of the sandbox
 *     generated guid email                          elements of the reply whose values the service generates
 *     call put new                                  the call of the client, by its name, if not by the operation
 *     secret abc                                    what an error does not show
 *
 * More exchanges of the same title may follow. Lines before the first one are for all of them. Requests that follow each
 * other have the same reply. Four spaces continue a line.
 * A reply is a text, /an expression/, or JSON, which may have more members; golden:NAME is a file of test/golden. The client
 * makes of it: members of the result as JSON (or the `same`), `without` names of members that are absent; or the error, by its code, the
 * number of the service, "a part" or /an expression/ of its text, and `hint "a part"`. Default: all members are in `raw`, or
 * the code for the status with every text of the reply.
 */

/** Who asks. Null: without this header. */
export interface Caller {
  readonly key: string | null;
  /** Only operations of a user are sent it. */
  readonly token: string | null;
}

const OWNER: Caller = { key: 'SANDBOXKEY', token: 'sandboxtoken' };

/** A request: a text is sent unchanged, anything else as JSON. */
export interface Ask extends Caller {
  readonly operation: `${'GET' | 'POST' | 'PUT' | 'DELETE'} /${string}`;
  readonly body: unknown;
  /** The status of the reply to a request before another one. */
  readonly status: number;
}

/** What the client makes of a reply. */
export interface Outcome {
  /** Members of the result, or null, or undefined. */
  readonly makes?: unknown;
  readonly without?: readonly string[];
  /** Members of the error. */
  readonly fails?: Readonly<Record<string, unknown>>;
}

export interface Row extends Outcome {
  /** The rules that it shows: `2.1-4, 2.1-7..9`. */
  readonly rules: string;
  readonly says: string;
  /** Which of several exchanges that say the same. */
  readonly example: string;
  readonly given: readonly Ask[];
  readonly asks: Ask;
  /** Whether both sides are tested. */
  readonly only: 'sandbox' | 'client' | null;
  readonly status: number;
  readonly type: string | undefined;
  readonly reply: unknown;
  readonly sandbox: Partial<SandboxOptions>;
  readonly generated: readonly string[];
  readonly call: string | undefined;
  readonly secrets: readonly string[];
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

/** The start of each XML. */
export const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';

const SAMPLES: Sample[] = [];
const MARK = 'sample of the service ';

/** A text whose values that are not texts are JSON. */
export function lines({ raw }: TemplateStringsArray, ...values: readonly unknown[]): string {
  const write = (_name: string, value: unknown) =>
    value instanceof Sample ? `${MARK}${SAMPLES.push(value) - 1}` : value;
  const written = values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value, write)));
  return String.raw({ raw }, ...written);
}

function parsed(text: string): unknown {
  if (text.startsWith('golden:')) return golden(text.slice('golden:'.length));
  const [, pattern] = /^\/(.*)\/$/.exec(text) ?? [];
  if (pattern !== undefined) return new RegExp(pattern);
  // A text in quotes keeps them.
  if (text.startsWith('"')) return text;
  try {
    return JSON.parse(text, (_name, value) =>
      typeof value === 'string' && value.startsWith(MARK) ? SAMPLES[Number(value.slice(MARK.length))] : value,
    );
  } catch {
    return text;
  }
}

function askOf(line: string): Ask {
  const [, status = '200', operation, text, key, token] =
    /^(?:(\d{3}) )?([A-Z]+ \/\S*)(?: (.*?))??(?: by ([A-Z]+|-)(?: ([a-z0-9]+|-))?)?$/.exec(line) ?? [];
  if (operation === undefined) throw new Error(`not a request: ${line}`);
  const value = parsed(text ?? '');
  // A request that is not an object or a list is sent as it is written.
  const written = typeof value === 'object' || text?.startsWith('golden:') === true ? value : text;
  const body = typeof written === 'string' && /^<[a-z]/.test(written) ? `${DECLARATION}${written}` : written;
  const caller = { key: key ?? OWNER.key, token: token ?? OWNER.token };
  const byName = Object.fromEntries(Object.entries(caller).map(([name, one]) => [name, one === '-' ? null : one]));
  return { ...caller, ...byName, operation: operation as Ask['operation'], body, status: Number(status) };
}

function outcomeOf(text: string | undefined, reply: unknown): Outcome {
  if (text === undefined) return {};
  if (text === 'same') return { makes: reply };
  if (text === 'undefined') return { makes: undefined };
  if (/^[[{]|^null/.test(text)) {
    const [members = '', without] = text.split(' without ');
    return { makes: parsed(members), ...(without !== undefined && { without: without.split(' ') }) };
  }
  const part = String.raw`"[^"]*"|\/.+?\/(?= hint|$)`;
  const pattern = new RegExp(String.raw`^([A-Z_]+)?(?: ?(\d+))?(?: ?(${part}))?(?: ?hint (${part}))?$`);
  const found = pattern.exec(text);
  if (found === null) throw new Error(`not an outcome: ${text}`);
  const [, code, serviceCode, message, hint] = found;
  const contains = (one: string | undefined) => {
    if (one === undefined) return undefined;
    return one.startsWith('"')
      ? expect.stringContaining(one.slice(1, -1))
      : expect.stringMatching(parsed(one) as RegExp);
  };
  const members = {
    code,
    serviceCode: serviceCode && Number(serviceCode),
    message: contains(message),
    hint: contains(hint),
  };
  return { fails: Object.fromEntries(Object.entries(members).filter(([, one]) => one !== undefined)) };
}

function replyOf(line: string) {
  const [left = '', outcome] = line.split(/ ?=> /);
  const [, status = '200', type, text = ''] = /^(?:(\d{3})(?: |$))?(?:([a-z]+\/[a-z+]+)(?: |$))?(.*)$/.exec(left) ?? [];
  const reply = parsed(text);
  return { status: Number(status), type, reply, ...outcomeOf(outcome, reply) };
}

interface Exchange {
  readonly given: string[];
  readonly request: string;
  readonly isSent: boolean;
  readonly replies: { readonly text: string; readonly isLive: boolean }[];
  readonly more: Record<string, string>;
}

/** Splits the lines of a title into exchanges. */
function exchangesOf(rest: readonly string[]): Exchange[] {
  const exchanges: Exchange[] = [];
  const [shared, common]: [string[], Record<string, string>] = [[], {}];
  let given: string[] = [];
  for (const line of rest) {
    const [, word = '', text = ''] = /^(\S+) ?(.*)$/s.exec(line) ?? [];
    const last = exchanges.at(-1);
    if (word === '>' || word === '>!') {
      // Requests without a reply between them share it.
      const isJoined = last !== undefined && last.replies.length === 0 && given.length === 0;
      const replies = isJoined ? last.replies : [];
      const before = isJoined ? last.given : [...shared, ...given];
      exchanges.push({ given: before, request: text, isSent: word === '>', replies, more: { ...common } });
      given = [];
    } else if (word === '+') (last === undefined ? shared : given).push(text);
    else if (word === '<' || word === '~') last?.replies.push({ text, isLive: word === '~' });
    else if (/^(with|generated|call|secret)$/.test(word)) (last?.more ?? common)[word] = text;
    else throw new Error(`not a line of a row: ${line}`);
  }
  return exchanges;
}

function rowsOf(text: string): Row[] {
  const [title = '', ...rest] = text.replaceAll(/\n {4,}/g, '').split('\n');
  const [, rules = '', says = ''] = TITLE.exec(title) ?? [];
  const exchanges = exchangesOf(rest);
  if (says === '' || (exchanges.at(-1)?.replies ?? []).length === 0) throw new Error(`not a row: ${text}`);
  return exchanges.flatMap(({ given, request, isSent, replies, more }) =>
    replies.map(({ text: reply, isLive }) => ({
      rules,
      says,
      example: isLive ? reply.slice(0, 80) : exchanges.length > 1 ? request.slice(0, 80) : '',
      given: given.map(askOf),
      asks: askOf(request),
      only: isLive ? 'client' : isSent ? null : 'sandbox',
      sandbox: parsed(more.with ?? '{}') as Row['sandbox'],
      generated: more.generated?.split(' ') ?? [],
      call: more.call,
      secrets: more.secret?.split(' ') ?? [],
      ...replyOf(reply),
    })),
  );
}

const TITLE = /^([\d., -]+): (.+)$/;

/** Reads rows: each begins with a line of rules. */
export function table(...written: Parameters<typeof lines>): readonly Row[] {
  const text = lines(...written).replaceAll(/^\s*\n/gm, '');
  return text
    .trim()
    .split(/\n(?=\d[\d., -]*: )/)
    .flatMap(rowsOf);
}
