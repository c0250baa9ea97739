import { CatchwordError, hasCode } from '../errors.ts';
import type { ActionWriter } from '../store/actions.ts';
import type { Decision } from './decision.ts';

/** A writer that may record decisions. */
export interface Recorder {
  readonly actions: ActionWriter;
}

/** Records a decision that the same transaction has carried out. @returns its id */
export function recordDone({ actions }: Recorder, decision: Decision, outcome: string, nowMs: number): number {
  return actions.add({ ...decision, at: nowMs, state: 'done', outcome, endedAt: nowMs });
}

/** Records a decision that cannot be carried out. @returns its id */
export function recordFailed({ actions }: Recorder, decision: Decision, outcome: string, nowMs: number): number {
  return actions.add({ ...decision, at: nowMs, state: 'failed', outcome, endedAt: nowMs });
}

/** Why a decision failed: the error, and what to do. Commands that only list what the page shows are left out. */
export function whyFailed(error: unknown): string {
  if (!(error instanceof CatchwordError)) return "it failed inside catchword: see catchword's log";
  // Names of options are for people at the command line.
  const message = error.message.replace(/^--[a-z]+: /, '');
  const { hint } = error;
  const isForCommands = hasCode(error, 'NOT_FOUND', 'RUN_NOT_ACTIVE', 'USAGE') && hint?.includes('npx catchword');
  if (hint === undefined || isForCommands) return message;
  return `${message}. ${hint.charAt(0).toUpperCase()}${hint.slice(1)}`;
}
