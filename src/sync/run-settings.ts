import type { Pointer } from '@catchword/catalog/content';
import type { SourceIdentity } from '@catchword/catalog/source-identity';
import type { Config } from '@catchword/settings/config';

type Limits =
  | 'removalLimit'
  | 'lossLimit'
  | 'runMaxAgeMs'
  | 'runRetentionMs'
  | 'minFreeBytes'
  | 'logRetentionMs'
  | 'logCap';

/** Rows of option-table.ts, and what is made of others. */
export interface RunSettings extends Pick<Config, 'perPage' | 'seam' | 'maxPasses' | 'withdrawnAs' | Limits> {
  readonly source: SourceIdentity;
  /** How late deltas may be. A response that a cache kept for longer is doubted. */
  readonly overlapMs: number;
  /** Maximum windows in the queue. A limit for its memory, not for speed. */
  readonly lookahead: number;
  readonly maxAttempts: number;
  /** The same for the first request of a run, so that a wrong address or key shows soon. */
  readonly firstAttempts: number;
  /** Whether the source has a point lookup. */
  readonly lookups: boolean;
  /** Volatile ones included. */
  readonly ignoreFields: readonly Pointer[];
  readonly volatileFields: readonly Pointer[];
  readonly untoldFields: readonly Pointer[];
  readonly deletedField?: string | undefined;
  /** Full runs in a row that must not have seen a product before it is removed. */
  readonly confirmations: number;
}
