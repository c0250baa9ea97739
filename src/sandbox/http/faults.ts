import { CatchwordError } from '../../errors.ts';
import { hash } from '../catalog/random.ts';

/**
 * What can go wrong with an answer. All but `5xx` and `429` come with status 200.
 * - `5xx` 500, 502 or 503 with JSON errors; `429` with `Retry-After: 1`; `html` a maintenance page
 * - `reset` the connection breaks in mid-body; `slow-body` the body trickles
 * - `truncated-gzip`, `truncated-json` half of the (compressed) body, as if it were whole
 * - `wrong-page` another page than asked for; `short-page` fewer items than the envelope says
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

/** Says what is wrong with the `request`-th product request (from 1); null: nothing. The same for the same seed. */
export type ChooseFault = (request: number) => FaultKind | null;

interface Rule {
  readonly kind: FaultKind;
  readonly probability: number;
  /** Only this request; null: any. */
  readonly request: number | null;
}

const DEFAULT_PROBABILITY = 0.05;

function parseRule(part: string): Rule {
  const [, name, sign, amount] = /^([\w-]+?)(?:([:@])([\d.]+))?$/.exec(part.trim()) ?? [];
  const kind = FAULT_KINDS.find((known) => known === name);
  const value = amount === undefined ? DEFAULT_PROBABILITY : Number(amount);
  const fits = sign === '@' ? Number.isSafeInteger(value) && value >= 1 : value >= 0 && value <= 1;
  if (kind === undefined || !fits) {
    throw new CatchwordError('USAGE', `--faults: "${part}" is not a fault`, {
      hint: `Use kind, kind:probability or kind@request, comma-separated, of these kinds: ${FAULT_KINDS.join(', ')}.`,
    });
  }
  return sign === '@' ? { kind, probability: 1, request: value } : { kind, probability: value, request: null };
}

/**
 * @param spec comma-separated `kind` (probability 0.05), `kind:probability` or `kind@n` (the nth request alone); the
 *   first that strikes counts. Empty: no faults.
 * @throws CatchwordError USAGE naming the part that cannot be read
 */
export function parseFaults(spec: string, seed: number): ChooseFault {
  const rules = spec === '' ? [] : spec.split(',').map(parseRule);
  return (request) => {
    const strikes = (rule: Rule, at: number) =>
      rule.request === null ? hash(seed, request, at) < rule.probability * 2 ** 32 : rule.request === request;
    return rules.find(strikes)?.kind ?? null;
  };
}
