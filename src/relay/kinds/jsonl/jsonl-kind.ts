import { pathOf, sizeOption, wholeOption } from '@catchword/sink-kit/sink-options';
import * as z from 'zod';

/** Events in a file. */
export const jsonlKind = {
  schemes: ['jsonl:'],
  stores: 'one event a line in a file, which can rotate',
  identity: 'path',
  // biome-ignore format: an option is a line.
  options: {
    rotate: sizeOption.optional().meta({ 'rotate=100MB': 'start a new file at that size; `PATH` becomes `…-<its last seq>.jsonl` (after a replay or a change of view, the numbers restart: sort files by time instead)' }),
    gzip: z.enum(['on', 'off'], 'on or off').default('on').meta({ 'gzip=off': 'leave rotated files uncompressed' }),
    keep: wholeOption(1, 1_000_000).optional().meta({ 'keep=N': 'keep so many rotated files and remove older ones' }),
  },
  isPath: true,
  address: pathOf,
  drops: 'keep',
};
