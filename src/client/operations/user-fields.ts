import { z } from 'zod';
import { text } from '../field-types.ts';
import { inputError } from '../input-error.ts';

const FIELDS = z.object(
  {
    reference: text.optional(),
    email: text.optional(),
    password: text.optional(),
    firstName: text.optional(),
    lastName: text.optional(),
    others: z.record(z.string(), text, 'an object of texts is needed').optional(),
  },
  'an object is needed',
);

/**
 * The fields of a user are texts, numbers among them in quotes. Which of them are needed is not looked at here.
 * @throws CatchwordError USAGE naming every field that is none; a password is not repeated
 */
export function checkUserFields(user: unknown): void {
  const parsed = FIELDS.safeParse(user, { reportInput: true });
  if (!parsed.success) throw inputError('the user', parsed.error.issues);
}
