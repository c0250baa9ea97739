/** What an operator may decide about a run; the target is its number. */
export const RUN_ACTIONS = ['approve', 'reject', 'undo', 'cancel'] as const;

/** What an operator may decide about a sink; the target is its name. */
export const SINK_ACTIONS = ['pause', 'resume', 'retry', 'replay', 'skip', 'skip-all'] as const;

/** What an operator may decide, on the page or with a command. The target of `start` is the kind of the run. */
export const ACTIONS = [...RUN_ACTIONS, 'start', ...SINK_ACTIONS] as const;

export type RunAction = (typeof RUN_ACTIONS)[number];
export type SinkAction = (typeof SINK_ACTIONS)[number];
export type Action = (typeof ACTIONS)[number];
