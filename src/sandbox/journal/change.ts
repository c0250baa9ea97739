import type { PlannedCall } from '../assets/ingestion.ts';

/** What changes what a sandbox holds. */
export type Change =
  | {
      readonly kind: 'request';
      readonly method: string;
      readonly path: string;
      readonly query: string;
      readonly apiKey: string;
      readonly accessToken: string | null;
      readonly body: Buffer;
      /** Whether addresses in the own network were taken then: what was refused stays so when it is done again. */
      readonly privateCallbacks: boolean;
    }
  /** Not part of the interface. `body`: as parsed from JSON. */
  | { readonly kind: 'control'; readonly path: string; readonly body: unknown }
  /** A call after an ingestion was made, or given up. */
  | { readonly kind: 'called'; readonly call: PlannedCall };

/** Keeps a change where changes are kept, then does it, at the time that it was kept with. */
export type RecordChange = <T>(change: Change, act: () => T) => T;
