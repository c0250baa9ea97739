import { CHANGE_OPS } from '@catchword/catalog/run-types';
import * as z from 'zod';
import { ACTIONS } from '../operate/decisions/decision-types.ts';
import type { SinkWord } from '../report/sink-report.ts';
import { CHANGE } from '../shown/shown-change.ts';
import { DECISION, DECISION_STATES } from '../shown/shown-decision.ts';
import { PARKED, PARKED_STATES } from '../shown/shown-parked.ts';
import { PROBLEM } from '../shown/shown-problem.ts';
import { REJECTED } from '../shown/shown-rejected.ts';
import { labelsOf } from '../shown/shown-row.ts';
import { RUN, RUN_STATES } from '../shown/shown-run.ts';
import { SINK, SINK_STATES } from '../shown/shown-sink.ts';
import { optionalNumber, textParameter } from './parameters.ts';

/*
 * The filters of lists, declared once: the parameters of /api, and the forms of the pages, where each has the name of the
 * column that it filters.
 */

/** A filter: one of these values, or all. @param title its name for people */
function oneOf<const T extends string>(title: string, description: string, values: readonly T[]) {
  return z
    .enum(values, `Use one of ${values.join(', ')}.`)
    .optional()
    .meta({ title, description });
}

const text = (title: string, description: string) => z.string().optional().meta({ title, description });
const OF_RUN = labelsOf(RUN);
const OF_DECISION = labelsOf(DECISION);
const OF_CHANGE = labelsOf(CHANGE);
const OF_PARKED = labelsOf(PARKED);
const OF_PROBLEM = labelsOf(PROBLEM);
const OF_REJECTED = labelsOf(REJECTED);
const isEach = (text: string): boolean => text.split(',').every((one) => CHANGE_OPS.some((op) => op === one));

export const RUN_FILTERS = {
  kind: oneOf(OF_RUN.kind, 'Only runs of this kind.', ['full', 'delta']),
  state: oneOf(OF_RUN.state, 'Only runs in this state.', RUN_STATES),
  proof: oneOf(OF_RUN.proof, 'Only runs with this proof.', ['sealed', 'open']),
};

export const SINK_FILTERS = {
  state: oneOf(labelsOf(SINK).state, 'Only sinks in this state.', Object.keys(SINK_STATES) as SinkWord[]),
};

export const DECISION_FILTERS = {
  action: oneOf(OF_DECISION.action, 'Only this decision.', ACTIONS),
  target: text(OF_DECISION.target, 'Only about this run (its number) or sink (its name).'),
  state: oneOf(OF_DECISION.state, 'Only decisions in this state.', DECISION_STATES),
};

export const CHANGE_FILTERS = {
  op: textParameter('Only changes of these kinds, between commas.', isEach, `Use ${CHANGE_OPS.join(',')}.`)
    .optional()
    .meta({ title: OF_CHANGE.op, examples: CHANGE_OPS }),
  field: textParameter(
    'Only changes of these top-level fields, between commas.',
    (text) => text !== '',
    'Use names such as title,variants.',
  )
    .optional()
    .meta({ title: OF_CHANGE.fields }),
};

export const PROBLEM_FILTERS = {
  topic: text(OF_PROBLEM.topic, 'Only this topic, such as `sink:shop`.'),
  state: oneOf(OF_PROBLEM.state, 'Only problems in this state.', ['open', 'ended']),
};

export const PARKED_FILTERS = {
  state: oneOf(OF_PARKED.state, 'Only events in this state.', PARKED_STATES),
  vbid: text(OF_PARKED.vbid, 'Only events of the product with this key.'),
};

export const REJECTED_FILTERS = {
  run: optionalNumber('Only items of the run with this number.', 1).meta({ title: OF_REJECTED.run }),
  reason: text(OF_REJECTED.reason, 'Only items whose reason contains this text.'),
};

/** Parts of a list by numbers that grow. */
export const RANGE = {
  before: optionalNumber('Only older ones: the number of the last one that you have.', 1),
  after: optionalNumber('Only newer ones, the oldest first: the number of the last one that you have, or 0.', 0),
};
