import { Command } from 'commander';
import { createUser, type NewUser, type User } from '../client/users/users.ts';
import { CatchwordError } from '../errors.ts';
import { withService } from './shared/connection.ts';
import type { CommandContext } from './shared/context.ts';
import { plain, printJson, printLine } from './shared/format.ts';
import { type Input, readAll } from './shared/input-stream.ts';
import { textOf } from './shared/utf8.ts';

interface CreateOptions {
  readonly reference?: string;
  readonly email?: string;
  readonly passwordStdin?: boolean;
  readonly firstName: string;
  readonly lastName: string;
  readonly field: Readonly<Record<string, string>>;
  readonly json?: boolean;
}

const PASSWORD_HINT = 'Set CATCHWORD_USER_PASSWORD, or pipe it in with --password-stdin.';

/** What is no further field, and what to do. */
const OWN_FIELDS: ReadonlyMap<string, string> = new Map([
  ['password', PASSWORD_HINT],
  ...['reference', 'email', 'first-name', 'last-name'].map((name) => [name, `Give it with --${name}.`] as const),
  ...['guid', 'access-token'].map((name) => [name, 'Leave it away: the service makes it.'] as const),
]);

function field(given: string, before: Readonly<Record<string, string>>): Record<string, string> {
  const [, name, value] = /^([A-Za-z_][\w.-]*)=(.*)$/s.exec(given) ?? [];
  // Services may take another spelling for the same.
  const hint = OWN_FIELDS.get(name?.toLowerCase().replaceAll('_', '-') ?? '');
  if (hint !== undefined) throw new CatchwordError('USAGE', `--field: ${name} is no further field`, { hint });
  if (name !== undefined && value !== undefined) return { ...before, [name]: value };
  throw new CatchwordError('USAGE', '--field: a name and a value are needed', {
    hint: 'Such as --field survey-option=true.',
  });
}

/** Never from the command line, where everybody who may list processes reads it. */
async function passwordOf(options: CreateOptions, configured: string | undefined, input: Input): Promise<string> {
  const password =
    options.passwordStdin === true
      ? textOf(await readAll(input, '-'), 'the password on stdin').replace(/\r?\n$/, '')
      : configured;
  if (password !== undefined && password !== '') return password;
  throw new CatchwordError('USAGE', 'a user with an email needs a password', {
    hint: PASSWORD_HINT,
  });
}

async function newUser(options: CreateOptions, configured: string | undefined, input: Input): Promise<NewUser> {
  const { reference, email, firstName, lastName, field: others } = options;
  if ((reference === undefined) === (email === undefined)) {
    throw new CatchwordError('USAGE', 'a user has either a reference or an email', {
      hint: 'Give --reference, or --email with a password.',
    });
  }
  const names = { firstName, lastName, others };
  if (reference !== undefined) return { reference, ...names };
  return { email: email ?? '', password: await passwordOf(options, configured, input), ...names };
}

function print(context: CommandContext, user: User): void {
  const rows = [
    ['guid', user.guid],
    ['reference', user.reference],
    ['email', user.email],
    ['access token', user.accessToken],
  ];
  for (const [name, value] of rows) if (value != null) printLine(context, `${name}: ${plain(value)}`);
}

function createCommand(context: CommandContext): Command {
  return new Command('create')
    .description('create a user, with a reference of your own or with an email and a password')
    .option('--reference <reference>', 'a reference user: unique for this API key')
    .option('--email <email>', 'a full user; its password comes from CATCHWORD_USER_PASSWORD')
    .option('--password-stdin', 'read the password from stdin')
    .requiredOption('--first-name <name>')
    .requiredOption('--last-name <name>')
    .option('--field <name=value>', 'a further field, such as redemption-code; may be repeated', field, {})
    .option('--json', 'print one JSON document')
    .action((options: CreateOptions) =>
      withService(context, async ({ caller }, { usersSuffix, userPassword }) => {
        const { signal } = context;
        const user = await createUser(caller, usersSuffix, await newUser(options, userPassword, context), signal);
        context.wrote(`created the user ${plain(user.guid ?? user.reference ?? user.email ?? '')}`.trim());
        if (options.json === true) printJson(context, user);
        else print(context, user);
      }),
    );
}

function resetCommand(context: CommandContext): Command {
  return new Command('reset-access')
    .description('reset the access token and fetch the new one; needs CATCHWORD_USER_REFERENCE')
    .option('--json', 'print one JSON document')
    .action((options: { readonly json?: boolean }) =>
      withService(context, async ({ tokens }, { tokenStore, userReference }) => {
        if (userReference === undefined) {
          throw new CatchwordError('CONFIG_INVALID', 'CATCHWORD_USER_REFERENCE is not set', {
            hint: 'Without the user’s reference the new token could not be fetched, so nothing was reset.',
          });
        }
        await tokens.reset(context.signal);
        context.wrote(`reset the access token of ${userReference}`);
        const shown = tokenStore === undefined ? { accessToken: tokens.current() } : { tokenStore };
        if (options.json === true) printJson(context, { reference: userReference, ...shown });
        else printLine(context, tokenStore === undefined ? `${tokens.current()}` : `the new token is in ${tokenStore}`);
      }),
    );
}

export function userCommand(context: CommandContext): Command {
  return new Command('user')
    .description('create users, and reset access tokens')
    .enablePositionalOptions()
    .addCommand(createCommand(context))
    .addCommand(resetCommand(context));
}
