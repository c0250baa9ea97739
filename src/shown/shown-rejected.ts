import * as z from 'zod';
import type { RejectedRow } from '../store/rows/runs.ts';
import { COUNT, type Row, schemaOf } from './shown-row.ts';

/** Characters of a body in a table of a command. */
const BODY_CHARS = 60;

/** An item of the source that a run could not use. */
// biome-ignore format: a row is a line.
export const REJECTED = [
  { key: 'id', schema: COUNT, about: 'Its number: it grows.', value: ({ id }) => id },
  { key: 'run', label: 'Run', list: 'long', schema: COUNT, about: 'The number of the run.', value: ({ run }) => run, text: ({ run }) => ({ text: `run ${run}`, href: `/runs/${run}` }) },
  { key: 'page', label: 'Page', list: 'column', schema: COUNT, about: 'The page that had it.', value: ({ page }) => page, text: ({ page, perPage }) => `page=${page}, per_page=${perPage}` },
  { key: 'perPage', schema: COUNT, about: 'The size of that page.', value: ({ perPage }) => perPage },
  { key: 'position', label: 'Item', list: 'column', schema: COUNT, about: 'Its place on the page, from 0; for people from 1.', value: ({ position }) => position, text: ({ position }) => position + 1 },
  { key: 'reason', label: 'Reason', list: 'column', schema: z.string(), about: 'Why it cannot be used.', value: ({ reason }) => reason },
  { key: 'body', label: 'Body', list: 'column', schema: z.string(), about: 'The item as the source sent it.', value: ({ body }) => body, text: ({ body }) => body.slice(0, BODY_CHARS) },
] as const satisfies readonly Row<RejectedRow>[];

export const REJECTED_SCHEMA = schemaOf('RejectedItem', 'An item of the source that is not a valid product.', REJECTED);
