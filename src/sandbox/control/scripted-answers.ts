import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { MESSAGES } from '../http/error-codes.ts';
import type { Operation } from '../http/operation.ts';
import { type Answer, errorAnswer, refusalAnswer } from '../http/response.ts';
import { type Control, taking, text } from './control.ts';

/** Answers that were arranged for operations, in place of their own. */
export interface Arranged {
  /** `POST /_sandbox/answer`: arranges some, in place of those before; 0 `times` takes them back. Nothing of it is kept. */
  readonly control: Control;
  /** The answer that is due, used up by asking; null: the operation's own. */
  due(operation: Operation): Answer | null;
}

const asked = z.strictObject({
  operation: z.string(),
  status: z
    .int()
    .refine((status) => status === 200 || (status >= 400 && status <= 599), '200, or 400 to 599, is needed'),
  message: text.max(1000).optional(),
  code: z.int().min(100).max(999).optional(),
  retry_after: z.int().min(0).max(86_400).optional(),
  times: z.int().min(0).max(1_000_000).default(1),
});

interface Waiting {
  readonly answer: Answer;
  left: number;
}

/** How an operation is called: `PUT /v4/assets/:vbid`. */
function nameOf({ method, path }: Operation): string {
  return `${method} ${path}`;
}

/** `POST /v3/users.xml` and `POST /v3/users` are one operation, whichever of them is called. */
function spelledShort(name: string): string {
  return name.replace(/\.xml(?=\/|$)/, '');
}

/** What is said where nothing was asked to be: of the code, else of the status. */
function usualMessage(status: number, code: number | undefined): string {
  const ofCode = code === undefined ? undefined : MESSAGES[code];
  const ofStatus = status === 200 ? undefined : STATUS_CODES[status];
  return ofCode ?? ofStatus ?? 'Failed';
}

/** Any operation may fail at a service, with any code at any status (interface, section 7); here it does when told to. */
export function createArranged(operations: readonly Operation[]): Arranged {
  const waiting = new Map<string, Waiting>();
  return {
    control: taking(asked, ({ operation: name, status, message, code, retry_after: retryAfter, times }) => {
      const short = spelledShort(name);
      const operation = operations.find((known) => spelledShort(nameOf(known)) === short);
      if (operation === undefined) {
        return errorAnswer(422, `operation: one of these is needed: ${operations.map(nameOf).join(', ')}`);
      }
      const why = message ?? usualMessage(status, code);
      const said = code === undefined || operation.format === 'xml' ? why : `${why} (${code})`;
      const refusal = refusalAnswer(operation.format, status, said, code);
      if (times === 0) waiting.delete(short);
      else
        waiting.set(short, {
          answer: { ...refusal, ...(retryAfter !== undefined && { retryAfter }) },
          left: times,
        });
      return { status: 200, body: JSON.stringify({ operation: name, status, times }) };
    }),
    due: (operation) => {
      const short = spelledShort(nameOf(operation));
      const next = waiting.get(short);
      if (next === undefined) return null;
      next.left--;
      if (next.left === 0) waiting.delete(short);
      return next.answer;
    },
  };
}
