import * as z from 'zod';
import { CHANGE_OPS } from '../catalog/run-types.ts';
import { ACTIONS } from '../operate/decisions/decision-types.ts';
import { DECISION_STATES } from '../shown/shown-decision.ts';
import { PARKED_STATES } from '../shown/shown-parked.ts';
import { RUN_STATES } from '../shown/shown-run.ts';
import { optionalNumber, textParameter } from './parameters.ts';

/* The filters of lists, declared once: the parameters of /api, and the forms of the pages. */

/** A filter: one of these values, or all. */
export function oneOf<const T extends string>(description: string, values: readonly T[]) {
  return z
    .enum(values, `Use one of ${values.join(', ')}.`)
    .optional()
    .meta({ description });
}

const text = (description: string) => z.string().optional().meta({ description });
const isEach = (text: string): boolean => text.split(',').every((one) => CHANGE_OPS.some((op) => op === one));

export const RUN_FILTERS = {
  kind: oneOf('Only runs of this kind.', ['full', 'delta']),
  state: oneOf('Only runs in this state.', RUN_STATES),
  proof: oneOf('Only runs with this proof.', ['sealed', 'open']),
};

export const DECISION_FILTERS = {
  action: oneOf('Only this decision.', ACTIONS),
  target: text('Only about this run (its number) or sink (its name).'),
  state: oneOf('Only decisions in this state.', DECISION_STATES),
};

export const CHANGE_FILTERS = {
  op: textParameter('Only changes of these kinds, between commas.', isEach, `Use ${CHANGE_OPS.join(',')}.`)
    .optional()
    .meta({ examples: CHANGE_OPS }),
  field: textParameter(
    'Only changes of these top-level fields, between commas.',
    (text) => text !== '',
    'Use names such as title,variants.',
  ).optional(),
};

export const PARKED_FILTERS = {
  state: oneOf('Only events in this state.', PARKED_STATES),
  vbid: text('Only events of the product with this key.'),
};

export const REJECTED_FILTERS = {
  run: optionalNumber('Only items of the run with this number.', 1),
  reason: text('Only items whose reason contains this text.'),
};

/** Parts of a list by numbers that grow. */
export const RANGE = {
  before: optionalNumber('Only older ones: the number of the last one that you have.', 1),
  after: optionalNumber('Only newer ones, the oldest first: the number of the last one that you have, or 0.', 0),
};
