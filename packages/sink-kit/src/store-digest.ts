import { createHash } from 'node:crypto';
import { canonicalJson } from '@catchword/catalog/content';
import type { BucketSum } from './sink.ts';

/*
 * A store is compared with its source by sums: every product has a digest, its key decides in which bucket it is, and two
 * buckets with the same number and sum of digests have the same products. Sums, because a store can add in any order.
 */

const DIGEST_DIGITS = 15;
const BUCKET_DIGITS = 3;

export function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}

/** The digest of what is compared of a product: the first 60 bits of its MD5. It finds mistakes, not forgeries. */
export function digestOf(text: string): string {
  return md5(text).slice(0, DIGEST_DIGITS);
}

/** The digest of what tells values apart as JSON: not their white space, nor the order of their members. */
export function digestOfJson(text: string): string {
  let value = text;
  try {
    JSON.parse(text);
    value = canonicalJson(text);
  } catch {
    // Somebody has written what is not JSON, or is nested too deep for a product.
  }
  return digestOf(value);
}

export function bucketOf(vbid: string): number {
  return Number.parseInt(md5(vbid).slice(0, BUCKET_DIGITS), 16);
}

/** Adds up digests by bucket. */
export function createSums() {
  const sums = new Map<number, { count: number; sum: bigint }>();
  return {
    sums: sums as ReadonlyMap<number, BucketSum>,
    add: (bucket: number, digest: string): void => {
      const entry = sums.get(bucket) ?? { count: 0, sum: 0n };
      entry.count++;
      entry.sum += BigInt(`0x${digest}`);
      sums.set(bucket, entry);
    },
  };
}

const DIGEST = new RegExp(`^[0-9a-f]{${DIGEST_DIGITS}}$`);

export function isDigest(text: unknown): text is string {
  return typeof text === 'string' && DIGEST.test(text);
}
