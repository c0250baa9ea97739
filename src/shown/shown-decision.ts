import { iso } from '@catchword/base/iso-time';
import * as z from 'zod';
import {
  ACTIONS,
  isRunAction,
  isSinkAction,
  type RunAction,
  type SinkAction,
} from '../operate/decisions/decision-types.ts';
import type { ActionRow } from '../store/rows/decision-rows.ts';
import type { Store } from '../store/store.ts';
import { COUNT, type Row, type Said, schemaOf, TIME, type Tone } from './shown-row.ts';
import { sinkPath } from './shown-sink.ts';

/** A decision as it is shown. */
export interface DecisionSeen extends ActionRow {
  readonly store: Store;
  readonly nowMs: number;
}

/** Decisions in words; `%` stands for the run or the sink. */
const PHRASES: Record<RunAction | SinkAction, (argument: number | null) => string> = {
  approve: () => 'approve the removals of %',
  reject: () => 'reject the removals of %',
  check: () => 'ask the service about the removals of %',
  undo: () => 'undo the removals of %',
  cancel: () => 'cancel %',
  pause: () => 'pause %',
  resume: () => 'resume %',
  retry: () => 'deliver the refused events of % again',
  replay: (from) => (from ? `replay % from change ${from}` : 'replay % with all current products'),
  skip: (seq) => `skip event ${seq} of %`,
  'skip-all': () => 'skip every refused event of %',
  release: () => 'let % go on',
  'release-newest': () => 'send % what differs now',
  verify: () => 'compare the products of % with its source',
  'verify-deep': () => 'compare % with its source',
  repair: () => 'repair which products % has',
  'repair-deep': () => 'repair %',
  'repair-all': () => 'repair %, and remove every extra product',
};

function phraseOf({ action, target, argument }: ActionRow): Said {
  if (action === 'start') return { text: `start a ${target} run` };
  const isRun = isRunAction(action);
  if (!isRun && !isSinkAction(action)) return { text: `${action} ${target}` };
  const text = PHRASES[action](argument).replace('%', () => `${isRun ? 'run' : 'sink'} ${target}`);
  return { text, href: isRun ? `/runs/${encodeURIComponent(target)}` : sinkPath(target) };
}

/** The outcome of a decision, or the reason why it waits. */
function outcomeOf({ store, nowMs, state, outcome, action }: DecisionSeen): string {
  if (state !== 'asked') return outcome ?? '';
  if (store.daemonLease.holder(nowMs) === null) return 'waits for the daemon, which is not running';
  const run = action === 'start' ? undefined : store.runs.unfinished();
  if (run === undefined) return 'waits for the daemon';
  const wait = `waits until run ${run.id} ends`;
  if (action === 'undo') return wait;
  return run.kind === 'full'
    ? `${wait}: a full run decides about the same products again; cancel it to decide now`
    : `${wait}, which may see missing products`;
}

const STATES = {
  asked: ['warn', 'waiting'],
  done: ['good', 'done'],
  failed: ['bad', 'failed'],
} as const satisfies Record<ActionRow['state'], readonly [tone: Tone, word: string]>;
export const DECISION_STATES = Object.keys(STATES) as ActionRow['state'][];

// biome-ignore format: a row is a line.
export const DECISION = [
  { key: 'id', schema: COUNT, about: 'The number of the decision: it grows.', value: ({ id }) => id },
  { key: 'at', label: 'When', list: 'column', schema: TIME.nullable(), about: 'When it was asked.', value: ({ at }) => iso(at), text: ({ at }) => ({ at }) },
  { key: 'who', label: 'Who', list: 'column', schema: z.string(), about: 'The name that the operator gave, and from where; or `command, user@host`.', value: ({ who }) => who },
  { key: 'action', label: 'Decision', list: 'column', schema: z.string(), about: `What was decided: ${ACTIONS.map((action) => `\`${action}\``).join(', ')}.`, value: ({ action }) => action, text: phraseOf },
  { key: 'target', label: 'About', schema: z.string(), about: 'The number of a run, the name of a sink, or the kind of run to start.', value: ({ target }) => target },
  { key: 'argument', schema: z.int().nullable(), about: 'Of `replay` the first change, of `skip` the event, of `release` what held the sink; otherwise null.', value: ({ argument }) => argument },
  { key: 'state', label: 'State', list: 'column', schema: z.enum(DECISION_STATES), about: '`asked`: it waits until it is carried out.', value: ({ state }) => state, text: ({ state }) => STATES[state][1], tone: ({ state }) => STATES[state][0] },
  { key: 'outcome', label: 'Outcome', list: 'column', schema: z.string().nullable(), about: 'What came of it, or why it failed; null: it waits.', value: ({ outcome }) => outcome, text: outcomeOf },
  { key: 'ended_at', schema: TIME.nullable(), about: 'When it was carried out, or failed.', value: ({ endedAt }) => iso(endedAt) },
] as const satisfies readonly Row<DecisionSeen>[];

export const DECISION_SCHEMA = schemaOf('Decision', 'What an operator decided about a run or a sink.', DECISION);
