import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { until } from '../../src/contract/harness.ts';
import type { CheckRequest, SinkCheck } from '../../src/store/schema/sink-tables.ts';
import type { TestMirror } from './feeding.ts';

/** Asks for a comparison as `sink verify` does. @returns its result */
export async function compared(mirror: TestMirror, request: Partial<CheckRequest> = {}): Promise<SinkCheck> {
  const id = randomUUID();
  const asked = { id, deep: true, repair: false, removesAll: false, ...request };
  mirror.store.request(({ sinks }) => sinks.askCheck(mirror.sink().id, asked));
  await until('the store was compared', () => mirror.sink().checked?.id === id);
  const result = mirror.sink().checked;
  if (result === null) throw new Error('the result is missing');
  expect(mirror.sink().checkAsked).toBeNull();
  return result;
}
