import { CatchwordError } from '../errors.ts';
import type { ActionWriter } from '../store/actions.ts';
import type { Decision } from './decision.ts';

/** A writer that may record decisions. */
export interface Recorder {
  readonly actions: ActionWriter;
}

/** Records a decision that the same transaction has carried out. */
export function recordDone({ actions }: Recorder, decision: Decision, outcome: string, nowMs: number): void {
  actions.add({ ...decision, at: nowMs, state: 'done', outcome, endedAt: nowMs });
}

/** Records a decision that cannot be carried out. */
export function recordFailed({ actions }: Recorder, decision: Decision, outcome: string, nowMs: number): void {
  actions.add({ ...decision, at: nowMs, state: 'failed', outcome, endedAt: nowMs });
}

/** Why a decision failed: the error, and what to do. */
export function whyFailed(error: unknown): string {
  if (!(error instanceof CatchwordError)) return "it failed inside catchword: see catchword's log";
  return error.hint === undefined ? error.message : `${error.message}. ${error.hint}`;
}
