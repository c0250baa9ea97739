import { CatchwordError } from '../../errors.ts';
import { namingMade } from '../errors/uncertain-write.ts';
import type { JsonAnswer } from './response.ts';

/** What an operation answers with, and where. */
export interface ObjectAnswer<T> {
  /** Undefined where it is no object. */
  readonly read: (value: unknown) => T | undefined;
  /** Scheme, host and port that was asked. */
  readonly origin: string;
  /** Of the operation. */
  readonly path: string;
  /** What is found there, such as `books`. */
  readonly name: string;
  /** The field that identifies what was to be created. */
  readonly creates?: string;
}

function unfit(what: string, { origin, path, name }: ObjectAnswer<unknown>): CatchwordError {
  return new CatchwordError('SERVICE_ERROR', `${origin} answered with ${what}`, {
    hint: `Check whether ${path} is the path of its ${name}.`,
  });
}

/**
 * What was answered to a write, whose shape is not shown: a text such as `saved` says that it is done, as an empty answer
 * does, and nothing else.
 * @throws CatchwordError SERVICE_ERROR, naming what was created all the same
 */
export function writtenObject<T>({ value, hide }: JsonAnswer, answer: ObjectAnswer<T>): T {
  const object = answer.read(typeof value === 'string' ? { text: value } : (value ?? {}));
  if (object !== undefined) return object;
  throw namingMade(unfit('JSON that is no object', answer), value, answer.creates, hide);
}

/**
 * What was answered to a read. Without a single field, it would pass for something that was found.
 * @throws CatchwordError SERVICE_ERROR
 */
export function foundObject<T>({ value }: JsonAnswer, answer: ObjectAnswer<T>): T {
  const object = answer.read(value ?? {});
  if (object === undefined) throw unfit('JSON that is no object', answer);
  if (Object.values(value ?? {}).some((one) => one !== null)) return object;
  throw unfit(`nothing in place of one of its ${answer.name}`, answer);
}
