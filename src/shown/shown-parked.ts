import { iso } from '@catchword/base/iso-time';
import { CHANGE_OPS } from '@catchword/catalog/run-types';
import * as z from 'zod';
import type { WaitingEvent } from '../store/rows/sink-rows.ts';
import { productSaid } from './shown-change.ts';
import { COUNT, type Row, schemaOf, TIME } from './shown-row.ts';

const STATES: Readonly<Record<WaitingEvent['state'], string>> = {
  refused: 'rejected by the sink',
  waiting: 'waits for an earlier event of its product',
  ready: 'is being redelivered',
};
export const PARKED_STATES = Object.keys(STATES) as WaitingEvent['state'][];

/** An event that a sink refused, or that waits behind such an event. */
// biome-ignore format: a row is a line.
export const PARKED = [
  { key: 'seq', label: 'Event', list: 'column', schema: COUNT, about: 'The number of its change.', value: ({ seq }) => seq },
  { key: 'title', label: 'Product', list: 'long', about: 'The product, as it was after the event.', value: ({ title }) => title, text: productSaid },
  { key: 'vbid', label: 'Key', list: 'column', schema: z.string(), about: 'The key of the product.', value: ({ vbid }) => vbid },
  { key: 'op', label: 'What', list: 'column', schema: z.enum(CHANGE_OPS), about: 'What happened to the product.', value: ({ op }) => op },
  { key: 'state', label: 'State', list: 'column', schema: z.enum(PARKED_STATES), about: '`refused`: it waits for a decision; `waiting`: for such an event of its product; `ready`: it is being redelivered.', value: ({ state }) => state, text: ({ state }) => STATES[state] },
  { key: 'at', label: 'Since', list: 'column', schema: TIME.nullable(), about: 'Since when.', value: ({ at }) => iso(at), text: ({ at }) => ({ at }) },
  { key: 'reason', label: 'Why', list: 'column', schema: z.string(), about: 'What the store said, or which event it waits for.', value: ({ reason }) => reason },
  { key: 'body', label: 'Sent', list: 'long', about: 'The product as it was sent.', value: ({ body }) => body },
  { key: 'freed', schema: COUNT, about: 'The generation of the sink in which it became ready; 0: it is not.', value: ({ freed }) => freed },
] as const satisfies readonly Row<WaitingEvent>[];

export const PARKED_SCHEMA = schemaOf('ParkedEvent', 'An event that a sink refused, or that waits behind one.', PARKED);
