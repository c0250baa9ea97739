import type { TimeLimit } from '../abort.ts';
import { SinkError } from './sink.ts';

/** Limits a call of a store: after `timeoutMs` it fails as unavailable. */
export function answerWithin(timeoutMs: number): TimeLimit {
  return { timeoutMs, reason: () => new SinkError('unavailable', `no answer within ${timeoutMs / 1000} s`) };
}
