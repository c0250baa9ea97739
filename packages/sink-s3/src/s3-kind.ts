import { wholeOption } from '@catchword/sink-kit/sink-options';
import * as z from 'zod';
import { s3Place } from './s3-place.ts';

const secondsOption = z
  .string()
  .regex(/^([0-5]?\d|60)s$/, 'a time from 0s to 60s')
  .transform((text) => Number.parseInt(text, 10) * 1_000);

/** Files in a bucket. */
export const s3Kind = {
  schemes: ['s3:'],
  stores: 'Parquet files in a bucket: a snapshot, and files of changes',
  identity: 'host of the endpoint, bucket, prefix',
  // biome-ignore format: an option is a line.
  options: {
    endpoint: z.url({ protocol: /^https?$/, error: 'an address such as https://minio.example' }).optional()
      .meta({ 'endpoint=https://…': 'the store; without it, `https://s3.REGION.amazonaws.com`. The path of a request names the bucket, as every S3 store that we know accepts. A store that wants it in the host (`BUCKET.HOST`) is not supported' }),
    region: z.string().min(1, 'a region').optional().meta({ 'region=us-east-1': 'the region, for signatures; `auto` for Cloudflare R2' }),
    format: z.enum(['parquet', 'ndjson'], 'parquet or ndjson').default('parquet').meta({ 'format=parquet': 'or `ndjson`: lines of JSON, compressed (`.ndjson.gz`)' }),
    // Within the relay's limit for a call.
    every: secondsOption.default(60_000).meta({ 'every=60s': 'gather changes for so long before the next file: from `0s` to `60s`' }),
    sse: z.enum(['AES256', 'aws:kms'], 'AES256 or aws:kms').optional().meta({ 'sse=AES256': 'or `aws:kms`: how the store encrypts the files, for a bucket whose policy demands it' }),
    'sse-key': z.string().min(1, 'the name of a key').optional().meta({ 'sse-key=NAME': 'the key for `sse=aws:kms`' }),
    files: wholeOption(2, 10_000).default(100).meta({ 'files=100': 'how many files of changes a snapshot replaces' }),
  },
  address: (url: URL) => {
    const { endpoint, bucket, prefix } = s3Place(url);
    return `${endpoint.host}${endpoint.pathname.replace(/\/$/, '')}/${bucket}/${prefix}`;
  },
  apart: 'another prefix (s3://BUCKET/PREFIX)',
};
