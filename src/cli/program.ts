import { withAbort } from '@catchword/base/abort';
import {
  CatchwordError,
  EXIT_CODES,
  hasCode,
  messageOf,
  remedyOf,
  systemCodeOf,
  usageError,
} from '@catchword/base/errors';
import { explainMissing } from '@catchword/base/missing-package';
import { printableLines } from '@catchword/base/printable';
import { VERSION } from '@catchword/base/version';
import { type DotEnv, withDotEnv } from '@catchword/settings/environment';
import { Command, CommanderError } from 'commander';
import type { CommandContext, ProcessContext } from './commands/shared/command-context.ts';
import { VERBS, type Verb } from './verb-table.ts';

async function loadCommand({ name, summary, load }: Verb, context: CommandContext): Promise<Command> {
  const make = await load();
  const command = [make(context)].flat().find((one) => one.name() === name);
  if (command === undefined) throw new Error(`the module of ${name} does not make that command`);
  return command.description(summary);
}

/** The verbs that a command line needs as they are: which it calls, which `help` explains, or all, for `completion`. */
function calledVerbs(argv: readonly string[]): readonly string[] {
  const [verb = '', explained = ''] = argv.filter((word) => !word.startsWith('-'));
  if (verb === 'completion') return VERBS.map(({ name }) => name);
  return verb === 'help' ? [verb, explained] : [verb];
}

function helpEnd(): string {
  const codes = Object.entries(EXIT_CODES).map(([code, meaning]) => `  ${code.padEnd(13)}  ${meaning}`);
  const end = 'Settings come from the environment and .env. Try it: npx catchword demo';
  return ['', 'Exit codes:', ...codes, '', end].join('\n');
}

/** Makes the program: the commands that `argv` calls, and for each other one its name and summary. */
export async function createProgram(context: CommandContext, argv: readonly string[]): Promise<Command> {
  const { stdout, stderr } = context;
  const root = new Command('catchword')
    .description("Keeps an exact local copy of somebody else's product catalog.")
    .version(VERSION)
    .enablePositionalOptions()
    .addHelpText('after', helpEnd());
  const called = calledVerbs(argv);
  for (const verb of VERBS) {
    const { name, summary, group } = verb;
    const command = called.includes(name) ? await loadCommand(verb, context) : new Command(name).description(summary);
    root.addCommand(command.helpGroup(`${group}:`));
  }
  for (const command of [root, ...root.commands, ...root.commands.flatMap((one) => one.commands)]) {
    command
      .exitOverride((error) => {
        throw parseError(command, error);
      })
      .configureOutput({
        writeOut: (text) => stdout.write(text),
        writeErr: (text) => stderr.write(text),
        getOutHelpWidth: () => columnsOf(stdout),
        getErrHelpWidth: () => columnsOf(stderr),
        // `reportError` prints usage errors like all others.
        outputError: () => {},
      });
  }
  return root;
}

function columnsOf(stream: NodeJS.WritableStream): number {
  return 'columns' in stream && typeof stream.columns === 'number' ? stream.columns : 80;
}

/** Requested help, and help for an incomplete command, have been written already; everything else is an error. */
function parseError(command: Command, error: CommanderError): Error {
  if (error.exitCode === 0 || error.code === 'commander.help') return error;
  const message = error.message.replace(/^error: /, '').replaceAll('\n', ' ');
  return usageError(message, `See: npx ${pathOf(command)} --help.`, error);
}

/** `catchword sink list`. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** An error as it is printed. Codes are those of docs/errors.md. */
interface Reported {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** Prints an error on stderr: for `--json` as one line of JSON, in the form of the API; for a person as `text`. */
async function printError(
  context: ProcessContext,
  isJson: boolean,
  { code, message, hint }: Reported,
  text = message,
): Promise<void> {
  if (isJson) return void context.stderr.write(`${JSON.stringify({ error: { code, message, hint: hint ?? '' } })}\n`);
  // Imported only now: a command that prints no error may not need it.
  const { colours } = await import('./commands/shared/output-format.ts');
  const c = colours(context, context.stderr);
  context.stderr.write(`${c.red('error')} ${printableLines(text)}\n`);
  if (hint !== undefined) context.stderr.write(`${c.dim('hint')}  ${printableLines(hint)}\n`);
}

/** Prints an error. @returns the exit code of a command that ends with it */
async function reportError(context: ProcessContext, isJson: boolean, error: unknown): Promise<number> {
  // Commander has answered an incomplete command, such as a bare `catchword sink`, with help on stderr.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  // The reader of stdout closed it (`| head`).
  if (systemCodeOf(error) === 'EPIPE') return 0;
  if (error instanceof CatchwordError) {
    const { code, message, hint = remedyOf(code) } = error;
    // The code ends the first line.
    await printError(context, isJson, { code, message, hint }, error.message.replace(/(?=\n)|$/, ` [${error.code}]`));
    return error.exitCode;
  }
  const hint = 'This is a defect of catchword; please report it with what you did.';
  await printError(context, isJson, { code: 'INTERNAL', message: messageOf(error), hint });
  if (context.environment.LOG_LEVEL === 'debug') context.stderr.write(`${error instanceof Error ? error.stack : ''}\n`);
  return 1;
}

/** @throws CatchwordError USAGE */
function workingDirectory(): string {
  try {
    return process.cwd();
  } catch (cause) {
    const hint = 'It was deleted, or this user may not search it. Change to another one: cd.';
    throw usageError(`the working directory cannot be used (${systemCodeOf(cause)})`, hint, cause);
  }
}

/** Waits until everything is written, or a write has failed. */
function flushed(stream: NodeJS.WritableStream): Promise<void> {
  return new Promise((resolve) => {
    stream.once('error', () => resolve());
    // The stream emits its error after the callback.
    stream.write('', () => setImmediate(resolve));
  });
}

/**
 * Runs one command line.
 * @param argv without the names of Node.js and of the program
 * @returns the exit code; undefined for a command that ended without one, which a signal may have stopped
 */
export async function run(argv: readonly string[], host: ProcessContext): Promise<number | undefined> {
  const isJson = argv.includes('--json');
  let settings: DotEnv;
  try {
    settings = withDotEnv(host.environment, workingDirectory());
  } catch (error) {
    return await reportError(host, isJson, error);
  }
  const lost = new AbortController();
  let written = '';
  let reported: Promise<void> | undefined;
  host.stdout.on('error', (error: Error) => {
    const message = `${written}the output cannot be written: ${error.message}`;
    // A reader that closes stdout (`| head`) is not a failure. Reported at once, because stopping may take long.
    if (systemCodeOf(error) !== 'EPIPE')
      reported ??= printError(host, isJson, {
        code: 'OUTPUT_LOST',
        message,
        hint: 'Send it to a disk with enough space.',
      });
    lost.abort();
  });
  // The exit code still says how the command ended.
  host.stderr.on('error', () => {});
  return await withAbort([host.signal, lost.signal], async (signal) => {
    let exitCode: number | undefined;
    const context: CommandContext = {
      ...host,
      ...settings,
      signal,
      wrote: (what) => {
        written = `${what}, but `;
      },
      setExitCode: (code) => {
        exitCode = code;
      },
    };
    let failure: unknown;
    try {
      await (await createProgram(context, argv)).parseAsync([...argv], { from: 'user' });
    } catch (error) {
      // A pause or a request that the signal ends throws an error of its own.
      const isAbort = signal.aborted && error instanceof Error && error.name === 'AbortError';
      failure = isAbort ? new CatchwordError('INTERRUPTED', 'interrupted') : explainMissing(error);
    }
    // After a failure, not even an empty write: on a full disk its error would replace the command's own.
    if (!(failure instanceof CatchwordError || lost.signal.aborted)) await flushed(host.stdout);
    if (reported !== undefined) {
      await reported;
      return 1;
    }
    if (failure === undefined) return exitCode;
    if (!signal.aborted || !hasCode(failure, 'INTERRUPTED')) return await reportError(context, isJson, failure);
    if (host.signal.aborted) await printError(context, isJson, failure);
    return exitCode;
  });
}
