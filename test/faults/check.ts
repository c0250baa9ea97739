import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { eventText } from '@catchword/catalog/event';
import { query } from '@catchword/testing/sqlite';
import { until } from '../../src/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { createHistory } from '../../src/store/history/history.ts';
import { legOf } from '../../src/store/rows/sink-legs.ts';
import { eventSource } from '../../src/store/rows/source-state.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { relayOf } from '../relay/feeding.ts';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog } from '../support/mirror.ts';
import type { Call } from './log.ts';
import { digestOf, type Known, SINK, settingsIn } from './workload.ts';

/** A promise was broken. The text before the first colon names it. */
export class Violation extends Error {}

function fail(promise: string, detail: string): never {
  throw new Violation(`${promise}: ${detail}`);
}

/** What the program had said before the power failed. */
export interface Promises {
  known: Known | null;
  /** Numbers of the runs that a log line called complete. */
  readonly runs: Set<number>;
}

export function note(promises: Promises, { kind, bytes }: Call): void {
  if (kind === 'mark') promises.known = JSON.parse(bytes.toString()) as Known;
  if (kind !== 'output') return;
  for (const line of bytes.toString().split('\n')) {
    const run = /"run":(\d+).*"msg":"run complete"/.exec(line)?.[1];
    if (run !== undefined) promises.runs.add(Number(run));
  }
}

interface Line {
  /** Null if it is not an event. */
  readonly event: { readonly sequence: string } | null;
  readonly file: string;
}

function parseLine(line: string): Line['event'] {
  try {
    return JSON.parse(line) as Line['event'];
  } catch {
    return null;
  }
}

/** The lines of the sink's files, the oldest first; null for one that is not an event. */
function linesIn(root: string): Line[] {
  const directory = join(root, 'out');
  const names = existsSync(directory) ? readdirSync(directory) : [];
  const plain = names.filter((name) => /^changes-\d+(\.\d+)?\.jsonl$/.test(name));
  const zipped = names.filter((name) => /\.jsonl\.gz$/.test(name) && !plain.includes(name.slice(0, -'.gz'.length)));
  const rotated = [...plain, ...zipped].sort();
  return [...rotated, ...names.filter((name) => name === 'changes.jsonl')].flatMap((file) => {
    const bytes = readFileSync(join(directory, file));
    const text = (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
    const lines = text.split('\n');
    // An incomplete last line.
    if (lines.at(-1) === '') lines.pop();
    return lines.map((line) => ({ event: parseLine(line), file }));
  });
}

/** The log, and the event of each change. */
function logOf(store: Store) {
  const changes = createHistory(store).after(0, 1_000_000);
  const source = eventSource(store.source, '');
  const events = changes.map((change) => JSON.parse(eventText(change, store.incarnation, source)) as unknown);
  return { changes, events };
}

/** @returns the number of the event's change */
function checkEvent(events: readonly unknown[], event: NonNullable<Line['event']>): number {
  const seq = Number(event.sequence);
  if (seq > events.length) fail('no sink is ahead', `the file has ${seq}, the mirror ends at ${events.length}`);
  if (!isDeepStrictEqual(events[seq - 1], event)) fail('no sink is ahead', `${seq} is another change in the file`);
  return seq;
}

function checkPromises(db: string, store: Store, { known, runs }: Promises): void {
  const newest = store.changes.lastSeq();
  if (known !== null && newest < known.last_seq) fail('promises are kept', `${newest} of ${known.last_seq} changes`);
  if (known !== null && digestOf(db, known.last_seq) !== known.digest) fail('promises are kept', 'other changes');
  if ((store.watermark() ?? 0) < Date.parse(known?.watermark ?? new Date(0).toISOString()))
    fail('promises are kept', 'the watermark went back');
  const told = new Set([...runs, ...(known?.last_run?.state === 'complete' ? [known.last_run.id] : [])]);
  for (const id of [...told, ...(known?.held ?? [])]) {
    const state = store.runs.get(id)?.state;
    // A held run may have been approved since.
    const isKept = state === 'complete' || (state === 'held' && !told.has(id));
    if (!isKept) fail('promises are kept', `run ${id} is ${state ?? 'gone'}`);
  }
}

function checkSound(db: string): void {
  const problems = [
    ...query<{ integrity_check: string }>(db, 'PRAGMA integrity_check').flatMap(({ integrity_check: line }) =>
      line === 'ok' ? [] : line,
    ),
    ...query(db, 'PRAGMA foreign_key_check').map((row) => JSON.stringify(row)),
  ];
  if (problems.length > 0) fail('the mirror is sound', problems.slice(0, 3).join('; '));
}

function attempt<Value>(promise: string, work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    if (error instanceof Violation) throw error;
    fail(promise, error instanceof Error ? error.message.slice(0, 600) : String(error));
  }
}

/** Checks what the power failure has left. @throws Violation */
export function checkCrashed(root: string, promises: Promises): void {
  const db = join(root, 'data', 'catalog.db');
  const lines = attempt('the files of the sink are readable', () => linesIn(root));
  if (!existsSync(db)) {
    if (promises.known !== null || promises.runs.size > 0) fail('promises are kept', 'the mirror is gone');
    if (lines.some(({ event }) => event !== null)) fail('no sink is ahead', 'the mirror is gone');
    return;
  }
  const store = attempt('the mirror opens', () => openStore(db));
  try {
    attempt('the mirror is sound', () => checkSound(db));
    attempt('the log is exact', () => expectExactLog(db));
    // First, because a mirror that lost commits often breaks the others too.
    checkPromises(db, store, promises);
    const { events } = logOf(store);
    const found = new Set(lines.flatMap(({ event }) => (event === null ? [] : checkEvent(events, event))));
    const cursor = store.sinks.list()[0]?.cursor ?? 0;
    for (let seq = 1; seq <= cursor; seq++) {
      if (!found.has(seq)) fail('what is confirmed is in the sink', `${seq} is missing; the cursor is ${cursor}`);
    }
  } finally {
    store.close();
  }
}

function checkFile(root: string, store: Store): void {
  const { changes, events } = logOf(store);
  const seqs = linesIn(root).map(({ event, file }) => {
    if (event === null) fail('the file holds every change once, in order', `a line of ${file} is not an event`);
    return checkEvent(events, event);
  });
  const { to: backfillTo } = legOf(store.sinks.list()[0] ?? { legs: [] });
  const newest = new Map(changes.filter(({ seq }) => seq <= backfillTo).map((one) => [one.vbid, one]));
  const expected = changes.filter(({ seq, op, vbid }) => {
    return seq > backfillTo || (op !== 'removed' && newest.get(vbid)?.seq === seq);
  });
  const wanted = expected.map(({ seq }) => seq);
  if (isDeepStrictEqual(seqs, wanted)) return;
  // What was delivered before a store was filled again may be there too.
  const at = seqs.findIndex((seq, index) => seq !== wanted[index]);
  const detail = `${seqs.length} lines, ${wanted.length} expected; at ${at}: ${seqs[at]} instead of ${wanted[at]}`;
  fail('the file holds every change once, in order', detail);
}

/** Finishes the work from what the power failure has left, and compares with the source. @throws Violation */
export async function finish(root: string, url: string, truth: ReadonlyMap<string, string>): Promise<void> {
  const settings: Record<string, string> = { ...settingsIn(root, url), CATCHWORD_REMOVAL_LIMIT: '100%' };
  const db = settings.CATCHWORD_DB ?? '';
  // The first run resumes, and may have read its windows before the source changed.
  for (let runs = 0; runs < 2 && !(runs > 0 && isDeepStrictEqual(catalogOf(db), truth)); runs++) {
    const run = await load(settings, 'full').catch((error: unknown) => fail('the work goes on', String(error)));
    if (run.state !== 'complete') fail('the work goes on', `run ${run.id} is ${run.state}`);
  }
  const store = openStore(db);
  try {
    const config = sinkConfig({ env: 'SINK', name: 'file', url: settings[SINK] ?? '', secret: undefined });
    const relay = relayOf(store, [config]);
    const isDone = (): boolean => {
      const sink = store.sinks.get('file');
      if ((sink?.error ?? null) !== null) fail('the work goes on', `the sink failed: ${sink?.error}`);
      return sink?.cursor === store.changes.lastSeq();
    };
    try {
      await until('the sink has everything', isDone);
    } finally {
      await relay.stop();
    }
    attempt('the file holds every change once, in order', () => checkFile(root, store));
    attempt('the log is exact', () => expectExactLog(db));
    if (!isDeepStrictEqual(catalogOf(db), truth)) fail('the mirror equals the source', 'it does not');
  } finally {
    store.close();
  }
}
