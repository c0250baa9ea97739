import * as z from 'zod';
import { iso } from '../base/iso-time.ts';
import { time } from '../report/text.ts';
import type { MirrorState } from '../state/mirror-state.ts';
import { nameOf, problemsOf, quietMs } from '../state/problems.ts';
import type { Reader } from '../store/schema/reader.ts';
import { type Row, schemaOf, TIME } from './shown-row.ts';

const DAY_MS = 86_400_000;

/** Problems that are open. One that is gone is watched for a while before it is over. */
export function seenProblems({ episodes, sinks }: Reader, state: MirrorState) {
  const found = new Set(problemsOf(state).map(nameOf));
  return episodes.open().map(({ topic, message, beganAt }) => {
    const isGone = !found.has(topic);
    const [, name = ''] = /^differs:(.*)/.exec(topic) ?? [];
    // When other problems have ended is not noted.
    const goneAt = (isGone && sinks.get(name)?.checked?.at) || null;
    const until = goneAt && goneAt + quietMs(episodes.countSince(topic, state.nowMs - DAY_MS));
    return { topic, message: message.replace('\n', ' '), beganAt, isGone, until };
  });
}

export type ProblemSeen = ReturnType<typeof seenProblems>[number];

/** What a person reads of a problem. */
export function problemSaid({ topic, message, isGone, until }: ProblemSeen): string {
  if (!isGone) return message;
  const end = until === null ? 'for a few minutes' : `until ${time(until).slice(11)}`;
  const [title = ''] = message.split('. ');
  return `${topic.startsWith('differs:') ? 'repaired' : 'gone'}, watching ${end}: ${title}`;
}

// biome-ignore format: a row is a line.
export const PROBLEM = [
  { key: 'topic', label: 'Topic', list: 'column', schema: z.string(), about: 'The topic, for programs: `runs`, `sink:NAME`.', value: ({ topic }) => topic },
  { key: 'message', label: 'Problem', list: 'column', schema: z.string(), about: 'What it means, and what to do.', value: ({ message }) => message, text: problemSaid },
  { key: 'began_at', label: 'Since', list: 'column', schema: TIME.nullable(), about: 'When it began.', value: ({ beganAt }) => iso(beganAt), text: ({ beganAt }) => ({ at: beganAt }) },
  { key: 'gone', schema: z.boolean(), about: 'Whether it is gone, and only watched for a while.', value: ({ isGone }) => isGone },
  { key: 'watched_until', schema: TIME.nullable(), about: 'Until when, if it is a store that equals its source again; otherwise null.', value: ({ until }) => iso(until) },
] as const satisfies readonly Row<ProblemSeen>[];

export const PROBLEM_SCHEMA = schemaOf(
  'Problem',
  'Something that is wrong, as it was noticed for notifications.',
  PROBLEM,
);
