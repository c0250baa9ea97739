import { once } from 'node:events';
import { CatchwordError, EXIT, messageOf, systemCodeOf, usageError } from '@catchword/base/errors';
import { sourceUntil } from '@catchword/base/input-stream';
import { verifyInBatches } from 'catchword-client/credentials/credentials';
import { MAX_CREDENTIALS } from 'catchword-client/credentials/submission';
import { Command } from 'commander';
import { count, plural } from '../../../report/text.ts';
import type { CommandContext } from '../shared/command-context.ts';
import type { JsonOption } from '../shared/output-format.ts';
import { withService } from '../shared/service-connection.ts';
import { progressBar } from '../shared/show-progress.ts';
import { isNdjson, submissionsIn } from './credential-input.ts';
import { headerOf, openResultFile, type ResultFormat, rowsOf } from './result-file.ts';

interface VerifyOptions extends JsonOption {
  readonly out?: string;
  readonly restart?: boolean;
  readonly force?: boolean;
}

type Output = Awaited<ReturnType<typeof openResultFile>>;

/** Numbers of accounts of this run, by `verified` or the code of their error. */
type Outcomes = ReadonlyMap<string, number>;

function total(outcomes: Outcomes): number {
  return [...outcomes.values()].reduce((sum, accounts) => sum + accounts, 0);
}

function summary(outcomes: Outcomes, { done, failed: before }: Output): string {
  const verified = outcomes.get('verified') ?? 0;
  const refused = [...outcomes].filter(([outcome]) => outcome !== 'verified');
  const codes = refused.map(([code, accounts]) => `${code}: ${count(accounts)}`).join(', ');
  const notVerified = before === 0 ? '' : ` (${count(before)} of them not verified)`;
  const known = done === 0 ? '' : `${count(done)} known from before${notVerified}, `;
  return `${count(verified)} verified, ${count(total(outcomes) - verified)} not${codes && ` (${codes})`}, ${known}`;
}

/** Says which file cannot be written, which results are kept, and how to resume. */
function explained(thrown: unknown, accounts: number, { out, restart }: VerifyOptions): unknown {
  const isOfFile = out !== undefined && systemCodeOf(thrown) !== undefined && !(thrown instanceof CatchwordError);
  const hint = 'Name a file of your own in a directory that you can write to, on a disk with free space.';
  const error = isOfFile ? usageError(`${out} cannot be written: ${messageOf(thrown)}`, hint, thrown) : thrown;
  if (!(error instanceof CatchwordError)) return error;
  const verified = plural(accounts, 'account');
  const message = error.code === 'INTERRUPTED' ? `interrupted after ${verified}` : error.message;
  if (out === undefined || accounts === 0) return error.with({ message });
  const again = `Repeat the command${restart === true ? ' without --restart' : ''} to resume.`;
  return error.with({ message, hint: `${error.hint ?? ''} The results of ${verified} are kept. ${again}`.trim() });
}

function stdoutOutput(stdout: NodeJS.WritableStream, rest: Output['rest']): Output {
  return {
    done: 0,
    failed: 0,
    rest,
    write: async (text) => {
      if (text !== '' && !stdout.write(text)) await once(stdout, 'drain');
    },
    finish: async () => {},
    close: async () => {},
  };
}

async function verify(context: CommandContext, path: string, options: VerifyOptions): Promise<void> {
  const { out, json = false, restart = false, force: unchecked = false } = options;
  if (out === undefined && restart) throw usageError('--restart needs --out', 'Add --out, or omit --restart.');
  if (out !== undefined && json) {
    throw usageError('--json and --out exclude each other', 'Omit --json: a file named .ndjson or .jsonl gets NDJSON.');
  }
  const format: ResultFormat = json || isNdjson(out ?? '') ? 'ndjson' : 'csv';
  await withService(context, async ({ caller }, { baseUrl, apiKey }) => {
    const input = sourceUntil(context, path);
    const bar = progressBar(context.stderr, '{bar} {percentage}% · {accounts} accounts · {requests}');
    if (input.file !== null) bar?.start(Number(input.file.size), 0, { accounts: '0', requests: '' });
    const outcomes = new Map<string, number>();
    let requests = 0;
    let output: Output | undefined;
    try {
      const submissions = submissionsIn(path, input, unchecked);
      const scope = [new URL(baseUrl).href, apiKey, format];
      if (out === undefined) output = stdoutOutput(context.stdout, submissions);
      else output = await openResultFile(out, restart, scope, submissions, input.file);
      const { done, rest } = output;
      const header = (): string => (done === 0 && requests === 0 ? headerOf(format) : '');
      for await (const results of verifyInBatches(caller, rest, context.signal, { before: done, unchecked })) {
        const refused = results.filter(({ ok }) => !ok).length;
        await output.write(header() + rowsOf(results, format), results.length, refused);
        for (const result of results) {
          const outcome = result.ok ? 'verified' : `code ${result.code ?? 'none'}`;
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        }
        requests++;
        const accounts = count(done + total(outcomes));
        bar?.update(input.bytesRead(), { accounts, requests: plural(requests, 'request') });
      }
      if (context.signal.aborted) throw new CatchwordError('INTERRUPTED', 'interrupted');
      await output.write(header(), 0, 0);
      await output.finish();
    } catch (error) {
      throw explained(error, (output?.done ?? 0) + total(outcomes), options);
    } finally {
      input.close();
      bar?.stop();
      await output?.close();
    }
    context.stderr.write(`${summary(outcomes, output)}${plural(requests, 'request')}\n`);
    // A script that goes on with all accounts must notice.
    const isRefused = output.failed > 0 || total(outcomes) > (outcomes.get('verified') ?? 0);
    if (isRefused) context.setExitCode(EXIT.differences);
  });
}

export function credentialsCommand(context: CommandContext): Command {
  const verifyCommand = new Command('verify')
    .description(`verify users and fetch their access tokens, ${count(MAX_CREDENTIALS)} a request`)
    .argument('<file>', 'CSV with a column reference, guid or access-token; NDJSON (.ndjson, .jsonl); - for stdin')
    .option('--out <file>', 'write the results to a file, as CSV or NDJSON by its name; repeat the command to resume')
    .option('--restart', 'discard the results of an earlier run in --out')
    .option('--force', 'send references of more than 255 characters too')
    .option('--json', 'print NDJSON instead of CSV')
    .addHelpText('after', '\nExits with 3 if an account could not be verified; its row has the code and the message.')
    .action((file: string, options: VerifyOptions) => verify(context, file, options));
  return new Command('credentials').enablePositionalOptions().addCommand(verifyCommand);
}
