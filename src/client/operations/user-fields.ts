import { z } from 'zod';
import { isName } from '../../xml/write.ts';
import { inputError, PARSING } from '../input/input-error.ts';
import { only, text } from '../input/request-fields.ts';

const NEEDS_NAME = 'it is no name of an XML element: letters, digits, -, _ and . are needed, a letter or _ first';

const others = z.record(z.string(), text, 'an object of texts is needed').superRefine((fields, context) => {
  for (const name of Object.keys(fields).filter((one) => !isName(one))) {
    // Not the value, which may be a secret.
    context.addIssue({ code: 'custom', message: NEEDS_NAME, input: name });
  }
});

const FIELDS = {
  reference: text.optional(),
  email: text.optional(),
  password: text.optional(),
  firstName: text.optional(),
  lastName: text.optional(),
  others: others.optional(),
};

const SCHEMA = only(FIELDS);

/**
 * The fields of a user are texts, numbers among them in quotes. Which of them are needed is not looked at here.
 * @throws CatchwordError USAGE naming every field that is none, or is not known; a password is not repeated
 */
export function checkUserFields(user: unknown): void {
  const parsed = SCHEMA.safeParse(user, PARSING);
  if (!parsed.success) throw inputError('the user', parsed.error.issues, { '': Object.keys(FIELDS) });
}
