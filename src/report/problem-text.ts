import { printable } from '@catchword/base/printable';
import { isUntold } from '@catchword/catalog/reasons';
import { type MirrorState, openRun, type SinkHealth } from '../state/mirror-state.ts';
import type { Problem, Topic } from '../state/problems.ts';
import type { Store } from '../store/store.ts';
import { adviceFor, reasonText } from './reason-text.ts';
import { restlessText, unusualText } from './run-text.ts';
import { checkJson, heldSinkText } from './sink-report.ts';
import { duration, plural, time } from './text.ts';

/** A problem in words: one short line that names it, then what it means and what to do. */
export interface ProblemText {
  readonly title: string;
  readonly advice: string;
}

/** Characters of an error that a message quotes. */
const QUOTED = 300;

function quoted(error: string | null | undefined): string {
  const text = printable(error ?? '');
  if (text === '') return '';
  return ` (${text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text})`;
}

function staleText({ freshness, asOf, firstAt, nowMs }: MirrorState): ProblemText {
  if (freshness === 'clock' && asOf !== null) {
    const title = `The age of the mirror is unknown: it is as of ${time(asOf)}, which this machine's clock has not reached`;
    return { title, advice: 'Correct the clock of this machine. If it is right now, the next complete run ends this.' };
  }
  const title = asOf === null ? 'The mirror has never been complete' : `The mirror is stale: it is as of ${time(asOf)}`;
  const since = asOf ?? firstAt ?? nowMs;
  return { title, advice: `No run has completed for ${duration(nowMs - since)}. See why: npx catchword status` };
}

function failureText({ failed, last, retry }: MirrorState): ProblemText {
  const title = failed > 1 ? `The newest ${failed} runs have failed` : 'A run does not get through';
  const error = failed > 0 ? last?.error : retry?.reason;
  return { title, advice: `catchword tries again by itself${quoted(error)}. See: npx catchword runs` };
}

function untoldText({ full }: MirrorState): ProblemText {
  const found = full?.reasons.filter(isUntold) ?? [];
  const [why, next] = [reasonText, adviceFor].map((words) => found.slice(0, 1).map(words).join(''));
  const advice = `Run ${full?.id}: ${why}. Nothing is concluded from what they do not tell. ${next}`;
  return { title: 'The deltas of the source do not tell every change', advice };
}

/** @param text what one run did */
function runText(id: number, { title, advice }: ProblemText): ProblemText {
  return { title: `Run ${id} ${title}`, advice: `${advice} See: npx catchword run ${id}` };
}

/** There may be many removals, so they are counted only for the message. */
function heldText({ held }: MirrorState, store: Store): ProblemText {
  const removals = held.reduce((sum, id) => sum + store.removals.heldCount(id), 0);
  const who = held.length === 1 ? `Run ${held[0]} holds` : `${held.length} runs hold`;
  const command = `npx catchword run ${held[0]}`;
  if (removals === 0) {
    const advice = `Their products were seen since. Approve or reject the run: ${command}`;
    return { title: `${who} no removals any more`, advice };
  }
  const title = `${who} ${plural(removals, 'removal')} for an approval`;
  return { title, advice: `Nothing was removed. Look at them, then approve or reject the run: ${command}` };
}

function haltedText({ row }: SinkHealth, store: Store): ProblemText {
  const { name, state, error } = row;
  const held = heldSinkText(store, row);
  if (held !== null)
    return { title: `Sink ${name} is held`, advice: `It gets no changes: ${held.reason}. ${held.advice}` };
  const advice = `It gets no changes${quoted(error)}. When the cause is gone: npx catchword sink resume ${name}`;
  return { title: `Sink ${name} is ${state}`, advice };
}

function failingText({ row: { name, error } }: SinkHealth): ProblemText {
  const advice = `catchword tries again by itself${quoted(error)}. See: npx catchword sink list`;
  return { title: `Sink ${name} fails`, advice };
}

function behindText({ row: { name, error }, lagSeconds }: SinkHealth): ProblemText {
  const why = error === null ? 'Its store is slow' : 'Its store does not answer, or a setting is wrong';
  const advice = `${why}${quoted(error)}. See: npx catchword sink list`;
  return { title: `Sink ${name} is ${duration((lagSeconds ?? 0) * 1000)} behind`, advice };
}

function differsText({ row }: SinkHealth): ProblemText {
  const { error = null, found = '', advice = '' } = checkJson(row) ?? {};
  const what = error === null ? 'differs from' : 'could not be compared with';
  return { title: `The store of sink ${row.name} ${what} its source`, advice: `${found}. ${advice}` };
}

function diskText({ disk: { free, size }, isDiskLow }: MirrorState): ProblemText {
  const title = `The disk of the mirror is nearly full: ${Math.floor((100 * free) / size)}% is free`;
  const stops = isDiskLow
    ? 'Runs read no page while less than CATCHWORD_MIN_FREE is free.'
    : 'Runs stop before they lose anything when the disk is full.';
  return { title, advice: `Free space, or move CATCHWORD_DB. ${stops}` };
}

type Words = (state: MirrorState, store: Store, sink: SinkHealth | undefined) => ProblemText | undefined;

/** undefined if the state does not have what the problem is about. */
const WORDS: Readonly<Record<Topic, Words>> = {
  stale: staleText,
  runs: failureText,
  open: (state) => ({
    title: `The newest ${state.open} full runs were not sealed`,
    advice: `Nothing proves that they saw every product${quoted(openRun(state)?.reasons.map(reasonText)[0])}. See: npx catchword runs`,
  }),
  untold: untoldText,
  updates: ({ restless: run }) => run && runText(run.id, restlessText(run)),
  unusual: ({ unusual: run }) => run && runText(run.run, unusualText(run)),
  held: heldText,
  pause: ({ pause }) => ({
    title: `The service asked catchword to wait until ${time(pause?.until ?? 0)}`,
    advice: 'No run reads before then. If this happens often, lower CATCHWORD_RATE_LIMIT.',
  }),
  disk: diskText,
  sink: (_state, store, sink) => sink && haltedText(sink, store),
  failing: (_state, _store, sink) => sink && failingText(sink),
  behind: (_state, _store, sink) => sink && behindText(sink),
  differs: (_state, _store, sink) => sink && differsText(sink),
};

/** Describes a problem, and says what to do. */
export function problemText({ topic, sink }: Problem, state: MirrorState, store: Store): ProblemText {
  const text = WORDS[topic](state, store, sink);
  if (text === undefined) throw new Error(`the state has no problem with the topic ${topic}`);
  return text;
}
