import type { Pointer } from '../catalog/content.ts';
import type { ProductLimit } from '../catalog/product-limit.ts';
import type { SourceIdentity } from '../catalog/source-identity.ts';

export interface RunSettings {
  readonly source: SourceIdentity;
  readonly perPage: number;
  /** Products that neighbouring windows share; 0: plain pages. */
  readonly seam: number;
  /** How late deltas may be. A response that a cache kept for longer is doubted. */
  readonly overlapMs: number;
  /** Maximum windows in the queue. A limit for its memory, not for speed. */
  readonly lookahead: number;
  readonly maxAttempts: number;
  /** The same for the first request of a run, so that a wrong address or key shows soon. */
  readonly firstAttempts: number;
  /** Maximum readings of the whole list. */
  readonly maxPasses: number;
  /** Whether the source has a point lookup. */
  readonly lookups: boolean;
  readonly ignoreFields: readonly Pointer[];
  /** Those that may differ between two answers although nothing was modified. */
  readonly volatileFields: readonly Pointer[];
  /** Fields of which the source's deltas tell no changes. */
  readonly untoldFields: readonly Pointer[];
  /** How to record a product that the source does not distribute any more. */
  readonly withdrawnAs: 'updated' | 'removed';
  /** The member, or `member=value`, by which the source says that a product does not exist any more; absent: none. */
  readonly deletedField?: string | undefined;
  readonly removalLimit: ProductLimit;
  /** Of how many products a run may empty a field before it is unusual. */
  readonly lossLimit: ProductLimit;
  /** Full runs in a row that must not have seen a product before it is removed. */
  readonly confirmations: number;
  /** An unfinished run that is older is given up. */
  readonly runMaxAgeMs: number;
  readonly runRetentionMs: number;
  /** Free bytes on the disk of the mirror below which no page is requested; null: no limit. */
  readonly minFreeBytes: number | null;
  /** How long superseded records of the change log are kept. */
  readonly logRetentionMs: number;
  /** A sink that is more records behind does not hold the log beyond its retention. */
  readonly logCap: number;
}
