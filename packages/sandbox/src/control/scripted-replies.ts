import { STATUS_CODES } from 'node:http';
import * as z from 'zod';
import type { Operation } from '../http/operation.ts';
import { MESSAGES, Rejection, type Reply, rejectionReply } from '../http/reply.ts';
import { controlOf, xmlText } from './controls.ts';

const script = z.strictObject({
  operation: z.string(),
  status: z.int().refine((status) => status === 200 || (status >= 400 && status <= 599), 'must be 200, or 400 to 599'),
  message: xmlText.max(1000).optional(),
  code: z.int().min(100).max(999).optional(),
  retry_after: z.int().min(0).max(86_400).optional(),
  times: z.int().min(0).max(1_000_000).default(1),
});

function nameOf({ method, path }: Operation): string {
  return `${method} ${path}`;
}

/** `POST /v3/users.xml` and `POST /v3/users` are one operation. */
function keyOf(name: string): string {
  return name.replace(/\.xml(?=\/|$)/, '');
}

function defaultMessage(status: number, code: number | undefined): string {
  const ofCode = code === undefined ? undefined : MESSAGES[code];
  return ofCode ?? (status === 200 ? undefined : STATUS_CODES[status]) ?? 'Failed';
}

/**
 * Replies that a test has set for operations, with any code and status (interface, section 7). They are not journaled.
 * @rule 7-4
 */
export function createScriptedReplies(operations: readonly Operation[]) {
  const scripts = new Map<string, { readonly reply: Reply; left: number }>();
  return {
    /** `POST /_sandbox/answer`: sets the reply of an operation, and replaces an earlier one. 0 `times` removes it. */
    control: controlOf(script, ({ operation: name, status, message, code, retry_after: retryAfter, times }) => {
      const key = keyOf(name);
      const operation = operations.find((known) => keyOf(nameOf(known)) === key);
      if (operation === undefined) {
        throw new Rejection(422, `operation: must be one of ${operations.map(nameOf).join(', ')}`);
      }
      const text = message ?? defaultMessage(status, code);
      const error = code === undefined || operation.format === 'xml' ? text : `${text} (${code})`;
      const reply = rejectionReply(operation.format, new Rejection(status, error, { code, retryAfter }));
      if (times === 0) scripts.delete(key);
      else scripts.set(key, { reply, left: times });
      return { operation: name, status, times };
    }),
    next: (operation: Operation): Reply | null => {
      const key = keyOf(nameOf(operation));
      const script = scripts.get(key);
      if (script === undefined) return null;
      script.left--;
      if (script.left === 0) scripts.delete(key);
      return script.reply;
    },
  };
}

export type ScriptedReplies = ReturnType<typeof createScriptedReplies>;
