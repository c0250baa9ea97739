import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { jsonReply } from '../../src/sandbox/http/reply.ts';
import { SANDBOX_DEFAULTS } from '../../src/sandbox/options.ts';
import { openState } from '../../src/sandbox/sandbox-state.ts';
import { temporaryDirectory } from '../support/mirror.ts';

it('the sandbox removes a change from the journal if it throws', () => {
  const db = join(temporaryDirectory(), 'sandbox.ndjson');
  const { record, close } = openState({ ...SANDBOX_DEFAULTS, items: 1, db }, AbortSignal.abort());
  onTestFinished(close);
  const change = { kind: 'control', path: '/_sandbox/mutate', body: {} } as const;
  record(change, () => jsonReply({}));
  const before = readFileSync(db, 'utf8');
  const fail = () => {
    throw new RangeError('Maximum call stack size exceeded');
  };
  expect(() => record(change, fail)).toThrow(RangeError);
  expect(readFileSync(db, 'utf8')).toBe(before);
});
