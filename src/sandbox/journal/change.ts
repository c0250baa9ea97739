import type { PlannedCall } from '../assets/ingestion.ts';

/** A change to the state of a sandbox. */
export type Change =
  | {
      readonly kind: 'request';
      readonly method: string;
      readonly path: string;
      readonly query: string;
      readonly apiKey: string;
      readonly accessToken: string | null;
      readonly body: Buffer;
    }
  /** A control request. `body`: as parsed from JSON. */
  | { readonly kind: 'control'; readonly path: string; readonly body: unknown }
  /** A callback was made, or given up. */
  | { readonly kind: 'called'; readonly call: PlannedCall };

/** Records a change in the journal, if there is one, and then makes it, at the time that was recorded. */
export type RecordChange = <T>(change: Change, act: () => T) => T;
