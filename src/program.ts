import { Command, CommanderError } from 'commander';
import { adoptCommand } from './commands/adopt.ts';
import { assetCommand } from './commands/asset.ts';
import { changesCommand } from './commands/changes.ts';
import { credentialsCommand } from './commands/credentials/verify.ts';
import { daemonCommands } from './commands/daemon.ts';
import { demoCommand } from './commands/demo.ts';
import { doctorCommand } from './commands/doctor/doctor.ts';
import { helpCommand } from './commands/help.ts';
import { licensesCommand } from './commands/licenses.ts';
import { packageCommand } from './commands/package.ts';
import { productCommands } from './commands/product.ts';
import { decideCommands } from './commands/review.ts';
import { runCommands } from './commands/runs.ts';
import { sandboxCommand } from './commands/sandbox.ts';
import type { CommandContext } from './commands/shared/context.ts';
import { colours } from './commands/shared/format.ts';
import { sinkCommand } from './commands/sink.ts';
import { statusCommand } from './commands/status.ts';
import { syncCommand } from './commands/sync.ts';
import { userCommand } from './commands/user.ts';
import { verifyCommand } from './commands/verify.ts';
import { CatchwordError, messageOf, systemCodeOf } from './errors.ts';
import { printableLines } from './printable.ts';
import { VERSION } from './version.ts';

/** All verbs, as they are called on a command line. Errors of a command are thrown: see `reportError`. */
export function createProgram(context: CommandContext): Command {
  const root = new Command('catchword')
    .description("Keeps an exact local copy of somebody else's product catalog.")
    .version(VERSION)
    .showHelpAfterError(false)
    .enablePositionalOptions()
    .showSuggestionAfterError(true)
    .addHelpText(
      'after',
      '\nSettings are read from the environment and .env; see the README. Try it: npx catchword demo',
    );
  const commands = [
    syncCommand(context),
    ...daemonCommands(context),
    statusCommand(context),
    ...runCommands(context),
    ...decideCommands(context),
    verifyCommand(context),
    adoptCommand(context),
    ...productCommands(context),
    changesCommand(context),
    sinkCommand(context),
    assetCommand(context),
    packageCommand(context),
    licensesCommand(context),
    credentialsCommand(context),
    userCommand(context),
    doctorCommand(context),
    sandboxCommand(context),
    demoCommand(context),
  ];
  for (const command of commands) root.addCommand(command);
  root.addCommand(helpCommand(root));
  for (const command of [root, ...commands, ...commands.flatMap((one) => one.commands)]) {
    command
      .exitOverride((error) => {
        throw usageError(command, error);
      })
      .configureOutput({
        writeOut: (text) => context.stdout.write(text),
        writeErr: (text) => context.stderr.write(text),
        // Usage errors are reported once, below, with everything else.
        outputError: () => {},
      });
  }
  return root;
}

/** Help that was asked for, or that is the answer to an incomplete command, has been written; all else is an error. */
function usageError(command: Command, error: CommanderError): Error {
  if (error.exitCode === 0 || error.code === 'commander.help') return error;
  const message = error.message.replace(/^error: /, '').replaceAll('\n', ' ');
  return new CatchwordError('USAGE', message, { hint: `See: npx ${pathOf(command)} --help.`, cause: error });
}

/** `catchword sink list`. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** What is wrong, in one line or in one line each, and a line that says what to do. */
export function printError(context: CommandContext, message: string, hint?: string): void {
  const c = colours(context, context.stderr);
  context.stderr.write(`${c.red('error')} ${printableLines(message)}\n`);
  if (hint !== undefined) context.stderr.write(`${c.dim('hint')}  ${printableLines(hint)}\n`);
}

/** Says on stderr what went wrong. @returns the exit code of a command that ends so */
export function reportError(context: CommandContext, error: unknown): number {
  // An incomplete command, such as a bare `catchword sink`, was answered with its help, on stderr.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  // The reader went away (`| head`), and has what it wanted.
  if (systemCodeOf(error) === 'EPIPE') return 0;
  if (error instanceof CatchwordError) {
    const [first = '', ...lines] = error.message.split('\n');
    printError(context, [`${first} [${error.code}]`, ...lines].join('\n'), error.hint);
    return error.exitCode;
  }
  printError(context, messageOf(error), 'This is a defect of catchword; please report it with what you did.');
  if (context.environment.LOG_LEVEL === 'debug') context.stderr.write(`${error instanceof Error ? error.stack : ''}\n`);
  return 1;
}
