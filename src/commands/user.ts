import { Command } from 'commander';
import { createUsers, type NewUser } from '../client/users/users.ts';
import { CatchwordError, usageError } from '../errors.ts';
import { type Input, readText } from '../input-stream.ts';
import { callService } from './shared/connection.ts';
import type { CommandContext } from './shared/context.ts';
import { type JsonOption, plain } from './shared/format.ts';

interface CreateOptions extends JsonOption, Pick<NewUser, 'firstName' | 'lastName'> {
  readonly reference?: string;
  readonly email?: string;
  readonly passwordStdin?: boolean;
  readonly field?: Readonly<Record<string, string>>;
}

const PASSWORD_HINT = 'Set CATCHWORD_USER_PASSWORD, or pipe it in with --password-stdin.';

/** Names that `--field` rejects, with a hint for each. */
const OWN_FIELDS: ReadonlyMap<string, string> = new Map([
  ['password', PASSWORD_HINT],
  ...['reference', 'email', 'first-name', 'last-name'].map((name) => [name, `Use --${name}.`] as const),
  ...['guid', 'access-token'].map((name) => [name, 'Omit it; the service assigns it.'] as const),
]);

function field(given: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, name, value] = /^([A-Za-z_][\w.-]*)=(.*)$/s.exec(given) ?? [];
  // A service may accept another spelling of these names.
  const hint = OWN_FIELDS.get(name?.toLowerCase().replaceAll('_', '-') ?? '');
  if (hint !== undefined) throw usageError(`--field: ${name} cannot be set with --field`, hint);
  if (name !== undefined && value !== undefined) return { ...before, [name]: value };
  throw usageError('--field must be of the form name=value', 'Such as --field survey-option=true.');
}

/** Reads the password. The command line cannot contain it: other users of the machine can list processes. */
async function passwordOf({ passwordStdin }: CreateOptions, configured: string | undefined, input: Input) {
  if (!passwordStdin && configured) return configured;
  const given = passwordStdin ? await readText(input, '-', 'the password on stdin') : '';
  const password = given.replace(/\r?\n$/, '');
  if (password !== '') return password;
  throw usageError('a user with an email needs a password', PASSWORD_HINT);
}

async function newUser(options: CreateOptions, configured: string | undefined, input: Input): Promise<NewUser> {
  const { reference, email, firstName, lastName, field: others = {} } = options;
  const names = { firstName, lastName, others };
  if (reference !== undefined && email === undefined) return { reference, ...names };
  if (reference === undefined && email !== undefined) {
    return { email, password: await passwordOf(options, configured, input), ...names };
  }
  throw usageError('a user has either a reference or an email', 'Use --reference, or --email with a password.');
}

async function create(context: CommandContext, options: CreateOptions): Promise<void> {
  await callService(context, options, async ({ caller }, { usersSuffix, userPassword }, signal) => {
    const given = await newUser(options, userPassword, context);
    const user = await createUsers(caller, usersSuffix).create(given, { signal });
    const { guid, reference, email, accessToken } = user;
    const rows = Object.entries({ guid, reference, email, 'access token': accessToken });
    const text = rows.flatMap(([name, value]) => (value == null ? [] : [`${name}: ${plain(value)}`]));
    return { done: `created the user ${plain(guid ?? reference ?? email ?? '')}`.trim(), json: user, text };
  });
}

async function resetAccess(context: CommandContext, options: JsonOption): Promise<void> {
  await callService(context, options, async ({ tokens }, { tokenStore, userReference: reference }, signal) => {
    if (reference === undefined) {
      const hint = 'Set it: the new token is fetched with it. The token was not reset.';
      throw new CatchwordError('CONFIG_INVALID', 'CATCHWORD_USER_REFERENCE is not set', { hint });
    }
    await tokens.reset(signal);
    const done = `reset the access token of ${reference}`;
    const accessToken = tokens.current();
    if (tokenStore === undefined) return { done, json: { reference, accessToken }, text: `${accessToken}` };
    return { done, json: { reference, tokenStore }, text: `the new token is in ${tokenStore}` };
  });
}

export function userCommand(context: CommandContext): Command {
  const group = new Command('user').enablePositionalOptions();
  group
    .command('create')
    .description('create a user, with a reference of your own or with an email and a password')
    .option('--reference <reference>', 'create a reference user; the reference must be unique for this API key')
    .option('--email <email>', 'create a full user; set its password in CATCHWORD_USER_PASSWORD')
    .option('--password-stdin', 'read the password from stdin')
    .requiredOption('--first-name <name>', 'first name of the user')
    .requiredOption('--last-name <name>', 'last name of the user')
    .option('--field <name=value>', 'add another field, such as redemption-code; may be repeated', field)
    .option('--json', 'print one JSON document')
    .action((options: CreateOptions) => create(context, options));
  group
    .command('reset-access')
    .description('reset the access token and fetch the new one (requires CATCHWORD_USER_REFERENCE)')
    .option('--json', 'print one JSON document')
    .action((options: JsonOption) => resetAccess(context, options));
  return group;
}
