import type { Random } from '@catchword/sandbox/catalog/random';

/*
 * What befalls a catalog on several machines, and when: decided by a seed alone, before it begins, so that a seed
 * replays it.
 */

export const HOSTS = ['keeper', 'scheduler', 'fetcher1', 'fetcher2', 'fetcher3'] as const;
export const ROLES = ['keeper1', 'keeper2', 'scheduler', 'fetcher1', 'fetcher2', 'fetcher3', 'relay'] as const;
export type HostName = (typeof HOSTS)[number];
export type RoleName = (typeof ROLES)[number];

export type Trouble = {
  /** Milliseconds since the beginning. */
  readonly atMs: number;
  /** How long it lasts; of a kill: until the role is started again. Milliseconds. */
  readonly lastsMs: number;
} & (
  | { readonly kind: 'kill'; readonly target: RoleName }
  | { readonly kind: 'cut' | 'half-open link'; readonly target: HostName }
  | { readonly kind: 'clock'; readonly target: HostName; readonly offsetMs: number }
  | { readonly kind: 'Redis killed' | 'Redis flushed' | 'Redis paused' | 'Redis frozen'; readonly target: 'redis' }
  /** The keeper that works is stopped for longer than its lease. */
  | { readonly kind: 'keeper frozen'; readonly target: 'keepers' }
);

const DAY_MS = 86_400_000;
/** The lease lasts 25 s. */
const FREEZE_MS = 34_000;
const PAUSE_MS = 4_000;
/** Some outages are longer than a silence after which a connection counts as lost (20 s). */
const LONG_MS = 26_000;

function choose<T>(random: Random, from: readonly [T, ...T[]]): T {
  return from[Math.floor(random() * from.length)] ?? from[0];
}

/** Mostly some seconds; one in eight is long. */
function outageMs(random: Random): number {
  return random() < 1 / 8 ? LONG_MS : 500 + random() * 7_500;
}

function draw(random: Random, atMs: number): Trouble {
  const die = random();
  const at = { atMs, lastsMs: outageMs(random) };
  if (die < 0.4) return { ...at, kind: 'kill', target: choose(random, ROLES), lastsMs: random() * PAUSE_MS };
  if (die < 0.52) return { ...at, kind: 'cut', target: choose(random, HOSTS) };
  if (die < 0.64) return { ...at, kind: 'half-open link', target: choose(random, HOSTS) };
  if (die < 0.74) {
    const offsetMs = random() < 0.5 ? DAY_MS : -DAY_MS;
    return { ...at, kind: 'clock', target: choose(random, HOSTS), offsetMs };
  }
  if (die < 0.8) return { ...at, kind: 'Redis killed', target: 'redis', lastsMs: random() * PAUSE_MS };
  if (die < 0.87) return { ...at, kind: 'Redis flushed', target: 'redis', lastsMs: 0 };
  if (die < 0.92) return { ...at, kind: 'Redis paused', target: 'redis' };
  if (die < 0.97) return { ...at, kind: 'Redis frozen', target: 'redis' };
  return { ...at, kind: 'keeper frozen', target: 'keepers', lastsMs: FREEZE_MS };
}

/** What an event occupies: nothing else befalls it meanwhile. */
function occupied({ kind, target }: Trouble): string[] {
  if (kind === 'keeper frozen') return ['keeper1', 'keeper2', 'keeper clock'];
  if (kind === 'clock') return [`${target} clock`];
  // A role and its host may have the same name.
  return kind === 'cut' || kind === 'half-open link' ? [`${target} link`] : [target];
}

/** Plans what happens within `totalMs`: something every 2 seconds on average, and at least once a keeper freezes. */
export function planTrouble(random: Random, totalMs: number): Trouble[] {
  const planned: Trouble[] = [];
  const taken = new Map<string, readonly { readonly fromMs: number; readonly toMs: number }[]>();
  function add(trouble: Trouble): void {
    const names = occupied(trouble);
    const endsAt = trouble.atMs + trouble.lastsMs;
    // The pause after it lets the target recover, so that there is something to disturb.
    const span = { fromMs: trouble.atMs, toMs: endsAt + PAUSE_MS };
    const spans = names.flatMap((name) => taken.get(name) ?? []);
    if (endsAt > totalMs || spans.some(({ fromMs, toMs }) => fromMs < span.toMs && span.fromMs < toMs)) return;
    for (const name of names) taken.set(name, [...(taken.get(name) ?? []), span]);
    planned.push(trouble);
  }
  add({
    kind: 'keeper frozen',
    target: 'keepers',
    atMs: Math.max(0, totalMs - FREEZE_MS - PAUSE_MS),
    lastsMs: FREEZE_MS,
  });
  for (let atMs = 1_000; atMs < totalMs; atMs += random() * 4_000) add(draw(random, atMs));
  return planned;
}
