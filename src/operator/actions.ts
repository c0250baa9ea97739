/** What an operator may decide, on the page or with a command. The target is a run's number, a sink's name, or a kind of run. */
export const ACTIONS = [
  'approve',
  'reject',
  'undo',
  'cancel',
  'start',
  'pause',
  'resume',
  'retry',
  'replay',
  'skip',
  'skip-all',
] as const;

export type Action = (typeof ACTIONS)[number];
