import { usageError } from '@catchword/base/errors';
import { hash } from '../catalog/random.ts';
import { Rejection, type Reply, rejectionReply } from './reply.ts';

/**
 * What can go wrong with a reply. All but `5xx` and `429` come with status 200.
 * - `5xx`: 500, 502 or 503 with JSON errors; `429`: with `Retry-After: 1`; `html`: a maintenance page
 * - `reset`: the connection breaks in mid-body; `slow-body`: the body trickles
 * - `truncated-gzip`, `truncated-json`: half of the (compressed) body, as if it were whole
 * - `wrong-page`: a page other than requested; `short-page`: fewer items than the envelope says
 */
export const FAULT_KINDS = [
  '5xx',
  'reset',
  'truncated-gzip',
  'truncated-json',
  'html',
  'wrong-page',
  'short-page',
  'slow-body',
  '429',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

const DEFAULT_PROBABILITY = 0.05;

/** `request`: the only request that it strikes; null: any. */
function parseRule(part: string) {
  const [, name, sign, amount] = /^([\w-]+?)(?:([:@])([\d.]+))?$/.exec(part.trim()) ?? [];
  const kind = FAULT_KINDS.find((known) => known === name);
  const value = amount === undefined ? DEFAULT_PROBABILITY : Number(amount);
  const fits = sign === '@' ? Number.isSafeInteger(value) && value >= 1 : value >= 0 && value <= 1;
  if (kind === undefined || !fits) {
    const hint = `Use kind, kind:probability or kind@request, comma-separated, of these kinds: ${FAULT_KINDS.join(', ')}.`;
    throw usageError(`--faults: "${part}" is not a fault`, hint);
  }
  return sign === '@' ? { kind, probability: 1, request: value } : { kind, probability: value, request: null };
}

/**
 * @param spec comma-separated `kind` (probability 0.05), `kind:probability` or `kind@n` (only the nth request); the first
 *   that strikes counts. Empty: no faults.
 * @throws CatchwordError USAGE that names the invalid part
 */
export function parseFaults(spec: string, seed: number) {
  const rules = spec === '' ? [] : spec.split(',').map(parseRule);
  /** Returns the fault of the `request`-th product request (from 1), if any. The same seed gives the same faults. */
  return (request: number): FaultKind | null => {
    const rule = rules.find(({ probability, request: only }, at) =>
      only === null ? hash(seed, request, at) < probability * 2 ** 32 : only === request,
    );
    return rule?.kind ?? null;
  };
}

/** Returns the reply that replaces a good one, or null if the fault is of another kind. */
export function faultReply(fault: FaultKind | null, request: number): Reply | null {
  const fail = (status: number, message: string, retryAfter?: number) =>
    rejectionReply('json', new Rejection(status, message, { retryAfter }));
  if (fault === '5xx') return fail([500, 502, 503][request % 3] ?? 500, 'Something went wrong');
  if (fault === '429') return fail(429, 'Too many requests', 1);
  if (fault !== 'html') return null;
  const body = '<!doctype html><html><head><title>Maintenance</title></head><body><h1>Back soon</h1></body></html>';
  return { status: 200, body, contentType: 'text/html; charset=utf-8' };
}
