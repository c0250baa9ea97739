import type { CapturedPage, FetchTask } from '@catchword/catalog/page-types';
import type { Run } from '@catchword/catalog/run-types';
import { sourceIdentity } from '@catchword/catalog/source-identity';
import { validatePage } from '@catchword/catalog/validate-page';
import { createRandom, type Random } from '@catchword/sandbox/catalog/random';
import type { Reader } from '../../src/store/schema/reader.ts';
import { nextStep } from '../../src/sync/next-step.ts';
import { createPassWindows } from '../../src/sync/pass-windows.ts';
import type { RunSettings } from '../../src/sync/run-settings.ts';
import { sweep } from '../../src/sync/sweep.ts';
import { type Adversary, createAdversary } from './adversary.ts';
import { pickOf, SCENES, STAGES } from './adversary-moves.ts';
import { createMemoryMirror, type MemoryMirror } from './memory-mirror.ts';
import { createMovingList, type MovingList, PLACES, type Place } from './moving-list.ts';

/*
 * The adversary against the pure functions of a run: plans, drafts of pages, seams, steps, conclusions and the sweep are
 * the program's. The mirror is in memory, and the queue, the timers and the lease are left out: so a run takes a
 * millisecond.
 */

const HOUR = 3_600_000;
const START = Date.UTC(2026, 0, 1);

/** What a seed draws. */
export interface Arena {
  readonly settings: RunSettings;
  readonly list: MovingList;
  readonly adversary: Adversary;
  readonly random: Random;
  /** By the world's clock, the source's, and this machine's. */
  readonly clock: { now: number; sourceMs: number; localMs: number };
  /** How many requests are under way at once. */
  readonly concurrency: number;
  /** Shares of the requests before which the process ends, or whose answer is lost. */
  readonly crashes: number;
  readonly losses: number;
  /** How often the source's clock is put forward or back by an hour: before a request, and between two passes or runs. */
  readonly jumps: number;
  readonly flips: number;
  /** Whether it is put back, too. */
  readonly goesBack: boolean;
  /** Share of delta runs. */
  readonly deltas: number;
  /** How often a window of a repair is answered as if the list were empty, and whether the first one of the list may be. */
  readonly blanks: number;
  readonly blanksHead: boolean;
  /** The newest pass that was asked. */
  pass: number;
}

/** What came of the runs of one history. */
export interface Outcome {
  readonly place: Place;
  runs: number;
  sealed: number;
  resumed: number;
  sealedAndResumed: number;
  /** Runs in which no answer showed a product that lives. */
  hid: number;
  /** Why the last run was wrong; null if it was not. */
  violation: string | null;
}

export function whole(random: Random, least: number, most: number): number {
  return Math.floor(least + random() * (most - least + 1));
}

/** @param isKept whether the mirror keeps a watermark, and so can be wrong with plain pages */
export function drawArena(seed: number, time?: () => number, isKept = false): Arena {
  const random = createRandom(seed);
  // By the seed's number, so that no other seed draws something else.
  const [isOfClocks, isOfBlanks, isOfPlain] = [seed % 16 === 0, seed % 16 === 8, isKept && seed % 16 === 4];
  const favourite = (random() < 0.5 ? pickOf(random, SCENES) : null) ?? 'any';
  const stage = favourite === 'any' || random() < 0.2 ? null : STAGES[favourite];
  const perPage = whole(random, stage === null ? 6 : 2 * stage.seam, 20);
  const seams = [2, 3, 4, 5, 6].filter((seam) => seam >= (stage?.seam ?? 0));
  const isPlain = isOfPlain || (stage === null && isKept && random() < 0.15);
  const seam = isPlain ? 0 : Math.min(pickOf(random, seams) ?? 2, perPage >> 1);
  const overlapMs = pickOf(random, [10_000, 60_000, 300_000]) ?? 60_000;
  const isLate = !isOfClocks && (stage?.isLate ?? random() < 0.5);
  const lagMs = isLate ? Math.floor((0.3 + 0.5 * random()) * overlapMs) : 0;
  // Most can be hidden where the adversary chooses the places.
  const place = (random() < 0.7 ? pickOf(random, stage?.places ?? PLACES) : null) ?? 'free';
  const arenaClock = { now: START, sourceMs: 0, localMs: random() < 0.3 ? HOUR : 0 };
  const now = time ?? (() => arenaClock.now);
  const list = createMovingList({
    size: whole(random, 12, 60),
    place,
    lagMs,
    // Where the time of change does not say where a product stands.
    notedEarlierMs:
      !place.startsWith('updated') && random() < 0.3 ? Math.floor(random() * (0.9 * overlapMs - lagMs)) : 0,
    inclusiveFrom: random() < 0.5,
    newestFirst: stage?.newestFirst ?? random() < 0.5,
    now,
    sourceNow: () => now() + arenaClock.sourceMs,
  });
  const concurrency = pickOf(random, [1, 1, 2, 3]) ?? 1;
  const settings: RunSettings = {
    source: sourceIdentity({ baseUrl: 'https://simulated.example', includeDetails: [], currency: [] }),
    perPage,
    seam,
    overlapMs,
    lookahead: concurrency,
    maxAttempts: 20,
    firstAttempts: 20,
    maxPasses: 2,
    lookups: false,
    ignoreFields: random() < 0.4 ? [['stock']] : [],
    volatileFields: [],
    untoldFields: [],
    withdrawnAs: stage?.withdrawnAs ?? (random() < 0.6 ? 'updated' : 'removed'),
    removalLimit: { percent: 1 },
    lossLimit: { percent: 5 },
    // Open runs in a row that miss a product count what they read, which proves nothing: only sealed runs are judged.
    confirmations: Number.MAX_SAFE_INTEGER,
    runMaxAgeMs: Number.MAX_SAFE_INTEGER,
    minFreeBytes: null,
    runRetentionMs: Number.MAX_SAFE_INTEGER,
    logRetentionMs: Number.MAX_SAFE_INTEGER,
    logCap: Number.MAX_SAFE_INTEGER,
  };
  const adversary = createAdversary({ list, random, perPage, seam, isLate, favourite });
  const crashes = random() < 0.5 ? 0 : 0.08 * random();
  const losses = random() < 0.5 ? 0 : 0.1;
  const jumps = random() < 0.3 || isOfClocks ? 0.02 : 0;
  // With late deltas, a clock that is put back may break assumption 3 of docs/page-drift.md.
  const goesBack = lagMs === 0;
  const flips = jumps > 0 && goesBack && (random() < 0.5 || isOfClocks) ? 0.3 : 0;
  const deltas = isOfClocks || isOfPlain ? 0.8 : (stage?.deltas ?? (random() < 0.7 ? 0.4 : 0.8));
  const blanks = random() < 0.2 || isOfBlanks ? 0.3 : 0;
  return {
    settings,
    list,
    adversary,
    random,
    clock: arenaClock,
    concurrency,
    crashes,
    losses,
    jumps,
    goesBack,
    flips,
    deltas,
    blanks,
    blanksHead: isOfBlanks,
    pass: 0,
  };
}

/** Puts the source's clock forward or back, seldom. */
function jumpSometimes({ random, jumps, flips, goesBack, clock }: Arena): void {
  if (flips === 0 && jumps > 0 && random() < jumps) clock.sourceMs += goesBack && random() < 0.5 ? -HOUR : HOUR;
}

/** Puts the source's clock back, or forward, or right again. */
export function flipSometimes({ random, flips, clock }: Arena): void {
  if (flips > 0 && random() < flips) clock.sourceMs = clock.sourceMs !== 0 ? 0 : random() < 0.5 ? HOUR : -HOUR;
}

/** Puts this machine's clock forward or back, but not where the source's goes forward and deltas are late: that hides it. */
export function setLocalClock({ random, jumps, goesBack, clock }: Arena): void {
  if (jumps > 0 && !goesBack) return;
  if (random() < 0.3) clock.localMs += (random() < 0.5 ? 1 : -1) * whole(random, 1_000, 20 * HOUR);
}

/** What happens to the source before it answers. @returns whether it answers as if the list were empty */
export function disturbSource(arena: Arena, task: FetchTask, isRepair = false): boolean {
  const { adversary, random, blanks, blanksHead } = arena;
  jumpSometimes(arena);
  // Not before a run's first answer: no run sees that a clock was put back and forward again since the run before.
  if (task.pass > 0 && task.pass !== arena.pass) flipSometimes(arena);
  arena.pass = task.pass;
  adversary.before(task);
  const mayBeBlank = task.window.page > 1 || (blanksHead && isRepair);
  return task.from === null && task.pass > 0 && mayBeBlank && random() < blanks;
}

/** The time from one process to the next: 1 s to 20 hours. */
export function pauseMs(random: Random): number {
  return random() < 0.6 ? whole(random, 1_000, 60_000) : whole(random, 60_000, 20 * HOUR);
}

/** Which change no delta will tell again, although the mirror lacks it; null for none. */
function whyForgotten({ list, settings }: Arena, store: Reader, run: Pick<Run, 'proof' | 'kind'>): string | null {
  const from = (store.readUpTo() ?? 0) - settings.overlapMs;
  for (const [id, { livingSince }] of list.lives) {
    const [state, known] = [list.stateOf(id), store.products.find(`P${id}`)];
    if (livingSince === null || state === undefined || known === undefined || state.stamp >= from) continue;
    // A run that rejects what a delta shows of a product names it; the next full run reads it in the list.
    if (state.spoilt && (run.kind !== 'full' || run.proof !== 'sealed')) continue;
    if (known.removed || known.body.includes(`"version":${state.version},`)) continue;
    return `the watermark passed a change of P${id}`;
  }
  return null;
}

/** Passes of a run at most: one that reads more may read without end. */
export const PASSES = 150;
export const ENDLESS = 'the run does not end';

/** Why the run was wrong; null if it was not. @param begun by the world's clock */
export function whyWrong(
  arena: Arena,
  store: Reader,
  run: Pick<Run, 'id' | 'proof' | 'kind'>,
  begun: number,
): string | null {
  const { list, settings } = arena;
  const passes = store.runs.passes(run.id);
  const hasWaited = passes.some(({ kind }) => kind === 'settle');
  const nextFrom = (store.readUpTo() ?? passes[0]?.sourceTime ?? 0) - settings.overlapMs;
  for (const [id, { livingSince }] of list.lives) {
    if (livingSince === null || livingSince >= begun) continue;
    const known = store.products.find(`P${id}`);
    if (known === undefined ? run.proof !== 'sealed' || run.kind !== 'full' : !known.removed) continue;
    // A list that stood still may lack what was modified while it was read: the next delta tells it.
    if (known === undefined && !hasWaited && (list.stateOf(id)?.stamp ?? 0) >= nextFrom) continue;
    return `${run.proof} run ${run.id} ${known === undefined ? 'missed' : 'removed'} P${id}, which lives`;
  }
  return whyForgotten(arena, store, run);
}

/** A run that the adversary disturbs, made by the program's own functions, one after another. */
function createBout(arena: Arena, mirror: MemoryMirror, run: Run, isCalm: boolean) {
  const { settings, list, adversary, random, clock, concurrency } = arena;
  const { store } = mirror;
  /** Pages that wait in the batch. */
  let batch: CapturedPage[] = [];
  let isResumed = false;
  /** Whether the answer that was asked last arrives first, as often as possible. */
  const isLastFirst = random() < 0.4;

  /** What the source answers; null if the answer is lost. */
  function ask(task: FetchTask): CapturedPage | null {
    const isRepair = store.runs.passes(run.id).at(-1)?.kind === 'repair';
    const isBlank = !isCalm && disturbSource(arena, task, isRepair);
    const { body, ids } = list.answer(task, isBlank);
    const requestedAt = clock.now + clock.localMs;
    const sourceTime = Math.floor((clock.now + clock.sourceMs) / 1000) * 1000;
    const latencyMs = whole(random, 1, 2_000);
    clock.now += latencyMs;
    if (!isCalm && random() < arena.losses) return null;
    adversary.answered(task, ids);
    const response = { sourceTime, requestedAt, receivedAt: requestedAt + latencyMs };
    return { task, page: validatePage(body, task.window), response, requests: 1 };
  }

  /** The process ends, and another one resumes the run later, perhaps with another clock. */
  function crash(): void {
    isResumed = true;
    batch = [];
    if (random() < 0.5) adversary.idle();
    clock.now += pauseMs(random);
    setLocalClock(arena);
  }

  /** @returns whether the pass was read to its end; false if the process ended */
  function readOnce(): boolean {
    const pass = store.runs.passes(run.id).at(-1);
    if (pass === undefined) throw new Error('the run has no pass');
    const windows = createPassWindows(store, pass, settings);
    windows.noteCheckpoints();
    const waiting: FetchTask[] = [];
    let arriving: CapturedPage[] = [];

    function flush(): void {
      const pages = batch;
      batch = [];
      for (const page of pages) {
        const applied = mirror.apply(page);
        if (applied !== null) windows.noteApplied(applied);
      }
    }

    for (;;) {
      waiting.push(...windows.request());
      if (!isCalm && random() < arena.crashes) {
        crash();
        return false;
      }
      const task = waiting.shift();
      if (task !== undefined) {
        const captured = ask(task);
        if (captured === null) waiting.push(task);
        else arriving.push(captured);
        if (waiting.length > 0 && arriving.length < concurrency && (isLastFirst || random() < 0.6)) continue;
      }
      const next = isLastFirst ? arriving.at(-1) : pickOf(random, arriving);
      if (next !== undefined) {
        arriving = arriving.filter((one) => one !== next);
        if (!windows.isPlanned(next.task.window)) continue;
        windows.arrive(next);
        batch.push(next);
        if (random() < 0.5 || store.runs.passes(run.id).at(-1)?.sourceTime === null) flush();
      } else if (windows.pending().length === 0) {
        if (!windows.hasArrived()) return true;
        flush();
      }
    }
  }

  return () => {
    for (;;) {
      while (!readOnce());
      const step = nextStep(store, run, settings);
      if (step.kind === 'finish') {
        const { conclusion } = step;
        // As finishRun does with a run that had to settle and could not.
        const proof = conclusion.mustSettle ? ('open' as const) : conclusion.proof;
        mirror.remove(sweep(store, run, { ...conclusion, proof }, settings).remove);
        // A clock that was put back is for the keeper to notice.
        if (arena.jumps === 0) mirror.end({ id: run.id, proof, reasons: conclusion.reasons });
        return { id: run.id, kind: run.kind, proof, isResumed };
      }
      if (step.kind === 'settle') {
        if (!isCalm) adversary.idle();
        clock.now += settings.overlapMs;
      }
      clock.now += 1_000;
      if (step.pass.pass > PASSES) return { id: run.id, kind: run.kind, proof: null, isResumed };
      mirror.addPass(step.pass);
    }
  };
}

/** How a run ended. */
export interface Ended {
  readonly isSealed: boolean;
  readonly isResumed: boolean;
  readonly violation: string | null;
}

/** Notes how a run ended. @returns whether to go on */
export function noteRun(outcome: Outcome, { adversary }: Arena, { isSealed, isResumed, violation }: Ended): boolean {
  outcome.runs++;
  if (isSealed) outcome.sealed++;
  if (isResumed) outcome.resumed++;
  if (isSealed && isResumed) outcome.sealedAndResumed++;
  if (adversary.isHiding()) outcome.hid++;
  outcome.violation = violation;
  return violation === null;
}

export function newOutcome({ list: { place } }: Arena): Outcome {
  return { place, runs: 0, sealed: 0, resumed: 0, sealedAndResumed: 0, hid: 0, violation: null };
}

/**
 * Lets the adversary disturb full runs of one mirror, until one is wrong.
 * @param count how many
 */
export function disturb(seed: number, count: number): Outcome {
  const arena = drawArena(seed);
  const outcome = newOutcome(arena);
  const { settings, adversary, clock, random } = arena;
  const mirror = createMemoryMirror(settings);
  /** Whether the first load is disturbed, too. */
  const first = random() < 0.5 ? 0 : 1;
  for (let at = 0; at <= count; at++) {
    if (at > 1) adversary.refill();
    // The products that are old by now are in no delta of the next run.
    clock.now += 3 * settings.overlapMs + whole(random, 0, HOUR);
    if (at >= first) adversary.begin();
    const begun = clock.now++;
    const ended = createBout(arena, mirror, mirror.begin(at + 1, begun + clock.localMs), at < first)();
    if (at < first) continue;
    const violation = ended.proof === null ? ENDLESS : whyWrong(arena, mirror.store, ended, begun);
    const { proof, isResumed } = ended;
    if (!noteRun(outcome, arena, { isSealed: proof === 'sealed', isResumed, violation })) break;
  }
  return outcome;
}
