import { iso } from '@catchword/base/iso-time';
import * as z from 'zod';
import { plural, time } from '../report/text.ts';
import type { MirrorState } from '../state/mirror-state.ts';
import { nameOf, problemsOf, quietMs } from '../state/problems.ts';
import type { SentNotice } from '../store/rows/incident-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import { COUNT, type Row, type Said, schemaOf, TIME, type Tone } from './shown-row.ts';

const DAY_MS = 86_400_000;

/** Problems, by default those that are open. One that is gone is watched for a while before it is over. */
export function seenProblems({ episodes, sinks }: Reader, state: MirrorState, noticed = episodes.open()) {
  const found = new Set(problemsOf(state).map(nameOf));
  return noticed.map(({ id, topic, message, beganAt, endedAt }) => {
    const isGone = endedAt !== null || !found.has(topic);
    const [, name = ''] = /^differs:(.*)/.exec(topic) ?? [];
    // When other problems have ended is not noted.
    const goneAt = (endedAt === null && isGone && sinks.get(name)?.checked?.at) || null;
    const until = goneAt && goneAt + quietMs(episodes.countSince(topic, state.nowMs - DAY_MS));
    const messages = episodes.messages(id);
    return { id, topic, message: message.replace('\n', ' '), beganAt, endedAt, isGone, until, messages };
  });
}

export type ProblemSeen = ReturnType<typeof seenProblems>[number];

/** What a person reads of a problem. */
export function problemSaid({ topic, message, endedAt, isGone, until }: ProblemSeen): string {
  if (endedAt !== null || !isGone) return message;
  const end = until === null ? 'for a few minutes' : `until ${time(until).slice(11)}`;
  const [title = ''] = message.split('. ');
  return `${topic.startsWith('differs:') ? 'repaired' : 'gone'}, watching ${end}: ${title}`;
}

type State = 'open' | 'gone' | 'ended';
const STATES: Readonly<Record<State, readonly [tone: Tone, word: string]>> = {
  open: ['warn', 'open'],
  gone: ['soft', 'gone, watched'],
  ended: ['good', 'over'],
};

function stateOf({ endedAt, isGone }: ProblemSeen): State {
  if (endedAt !== null) return 'ended';
  return isGone ? 'gone' : 'open';
}

/** What a channel got about a problem, or did not get. */
function messageSaid({ channel, phase, state, attempts, deliveredAt, error }: SentNotice): Said {
  const what = `${channel}: ${phase === 'ended' ? 'that it is over, ' : ''}${state}`;
  if (deliveredAt !== null) return { text: `${what} ${time(deliveredAt)}` };
  const why = attempts === 0 ? '' : ` after ${plural(attempts, 'try').replace('trys', 'tries')}: ${error}`;
  return { text: `${what}${why}`, tone: 'warn' };
}

const MESSAGE = z.object({
  channel: z.string(),
  phase: z
    .enum(['began', 'ended'])
    .meta({ description: 'Whether it says that the problem began, or that it is over.' }),
  state: z.enum(['delivered', 'given up', 'waiting']),
  attempts: COUNT,
  delivered_at: TIME.nullable(),
  error: z.string().nullable().meta({ description: 'Why the last try failed.' }),
});

// biome-ignore format: a row is a line.
export const PROBLEM = [
  { key: 'id', schema: COUNT, about: 'Its number: it grows.', value: ({ id }) => id },
  { key: 'topic', label: 'Topic', list: 'column', schema: z.string(), about: 'The topic, for programs: `runs`, `sink:NAME`.', value: ({ topic }) => topic },
  { key: 'message', label: 'Problem', list: 'column', schema: z.string(), about: 'What it means, and what to do.', value: ({ message }) => message, text: problemSaid },
  { key: 'state', label: 'State', list: 'column', about: 'Whether it is open.', value: stateOf, text: (of) => STATES[stateOf(of)][1], tone: (of) => STATES[stateOf(of)][0] },
  { key: 'began_at', label: 'Since', list: 'column', schema: TIME.nullable(), about: 'When it began.', value: ({ beganAt }) => iso(beganAt), text: ({ beganAt }) => ({ at: beganAt }) },
  { key: 'ended_at', label: 'Until', list: 'column', schema: TIME.nullable(), about: 'When it was over; null: it is open.', value: ({ endedAt }) => iso(endedAt), text: ({ endedAt }) => endedAt === null ? null : { at: endedAt } },
  { key: 'gone', schema: z.boolean(), about: 'Whether it is gone, and only watched for a while.', value: ({ isGone }) => isGone },
  { key: 'watched_until', schema: TIME.nullable(), about: 'Until when, if it is a store that equals its source again; otherwise null.', value: ({ until }) => iso(until) },
  { key: 'messages', label: 'Messages', list: 'long', schema: z.array(MESSAGE).readonly(), about: 'What each channel got about it, and what it did not get.', value: ({ messages }) => messages.map(({ channel, phase, state, attempts, deliveredAt, error }) => ({ channel, phase, state, attempts, delivered_at: iso(deliveredAt), error })), text: ({ messages }) => messages.map(messageSaid) },
] as const satisfies readonly Row<ProblemSeen>[];

export const PROBLEM_SCHEMA = schemaOf(
  'Problem',
  'Something that is wrong, or was, as it was noticed for notifications.',
  PROBLEM,
);
