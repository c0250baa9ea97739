import { usageError } from '@catchword/base/errors';
import { type Input, readText } from '@catchword/base/input-stream';
import { createUsers, type NewUser, type UncheckedUser, type User } from 'catchword-client/users/users';
import { Command } from 'commander';
import type { CommandContext } from './shared/command-context.ts';
import { plain } from './shared/output-format.ts';
import { serviceCommand } from './shared/service-connection.ts';

interface CreateOptions extends Pick<UncheckedUser, 'firstName' | 'lastName'> {
  readonly reference?: string;
  readonly email?: string;
  readonly passwordStdin?: boolean;
  readonly force?: boolean;
  readonly field?: Readonly<Record<string, string>>;
}

const CREATE_HELP = `
Required: --first-name, --last-name, and either --reference or --email with a password.

  catchword user create --reference reader-7 --first-name Ada --last-name Abernathy`;

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

async function newUser(options: CreateOptions, configured: string | undefined, input: Input): Promise<UncheckedUser> {
  const { reference, email, firstName, lastName, force, field: others = {} } = options;
  if (force !== true && (reference === undefined) === (email === undefined)) {
    throw usageError('a user has either a reference or an email', 'Use --reference, or --email with a password.');
  }
  const hasEmail = email !== undefined;
  const needsPassword = force === true ? options.passwordStdin || (hasEmail && configured) : hasEmail;
  const password = needsPassword ? await passwordOf(options, configured, input) : undefined;
  return { reference, email, password, firstName, lastName, others };
}

function described({ guid, reference, email, accessToken }: User): string[] {
  const rows = Object.entries({ guid, reference, email, 'access token': accessToken });
  return rows.flatMap(([name, value]) => (value == null ? [] : [`${name}: ${plain(value)}`]));
}

export function userCommand(context: CommandContext): Command {
  const group = new Command('user').enablePositionalOptions();
  const create = group
    .command('create')
    .description('create a user, with a reference of your own or with an email and a password')
    .option('--reference <reference>', 'create a reference user; the reference must be unique for this API key')
    .option('--email <email>', 'create a full user; set its password in CATCHWORD_USER_PASSWORD')
    .option('--password-stdin', 'read the password from stdin')
    .option('--first-name <name>', 'first name of the user (required)')
    .option('--last-name <name>', 'last name of the user (required)')
    .option('--field <name=value>', 'add another field, such as redemption-code; may be repeated', field)
    .option('--force', 'send the fields unchecked, and let the service judge them')
    .addHelpText('after', CREATE_HELP);
  serviceCommand(context, create, async ({ caller, config, signal }, options: CreateOptions) => {
    const given = await newUser(options, config.userPassword, context);
    const users = createUsers(caller, config.usersSuffix);
    const user = await (options.force === true
      ? users.create(given, { signal, unchecked: true })
      : users.create(given as NewUser, { signal }));
    const { guid, reference, email } = user;
    const text = described(user);
    return { done: `created the user ${plain(guid ?? reference ?? email ?? '')}`.trim(), json: user, text };
  });
  const get = group
    .command('get')
    .description('show a user, with the access token if the service returns it')
    .argument('<id>', 'guid, reference or email');
  serviceCommand(context, get, async ({ caller, config, signal }, id: string) => {
    const user = await createUsers(caller, config.usersSuffix).read(id, { signal });
    return { json: user, text: described(user) };
  });
  const reset = group.command('reset-access').description('reset the access token and fetch the new one');
  serviceCommand(context, reset, async ({ tokens, config, signal }) => {
    const { tokenStore, userReference: reference } = config;
    const accessToken = await tokens.reset(signal);
    const done = `reset the access token${reference === undefined ? '' : ` of ${reference}`}`;
    if (tokenStore === undefined) return { done, json: { reference, accessToken }, text: accessToken };
    return { done, json: { reference, tokenStore }, text: `the new token is in ${tokenStore}` };
  });
  return group;
}
