import { CatchwordError, hasCode } from '@catchword/base/errors';
import type { ActionRow } from '../../store/rows/decision-rows.ts';
import type { Reader } from '../../store/schema/reader.ts';
import type { RequestWriter } from '../../store/schema/writers.ts';
import { requireHeld } from '../../sync/approve-held-run.ts';
import { requireRun } from '../../sync/finish-run.ts';
import type { Decision } from './decision-types.ts';

/** A writer that may record decisions. */
export type Recorder = Pick<RequestWriter, 'actions'>;

/**
 * Records a decision that the same transaction has carried out (`done`), or that cannot be carried out (`failed`);
 * default: it waits until the process with the lease carries it out.
 * @returns its id
 */
export function record(
  { actions }: Recorder,
  decision: Decision,
  nowMs: number,
  state: ActionRow['state'] = 'asked',
  outcome: string | null = null,
): number {
  return actions.add({ ...decision, at: nowMs, state, outcome, endedAt: state === 'asked' ? null : nowMs });
}

/**
 * Checks what can be known before a review is carried out, where it is checked again: so an operator learns it at once.
 * @throws CatchwordError NOT_FOUND, RUN_NOT_ACTIVE
 */
export function requireReviewable(store: Reader, { action, target }: Decision): void {
  if (action === 'undo') requireRun(store, Number(target));
  else requireHeld(store, Number(target));
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
