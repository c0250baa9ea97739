import { Presets, SingleBar } from 'cli-progress';
import { Command } from 'commander';
import { verifyInBatches } from '../../client/credentials/credentials.ts';
import { type CredentialResult, MAX_CREDENTIALS } from '../../client/credentials/submission.ts';
import type { Caller } from '../../client/http/requester.ts';
import { CatchwordError, fromErrorRecord, toErrorRecord } from '../../errors.ts';
import type { AskedService } from '../credential-state.ts';
import { withService } from '../shared/connection.ts';
import type { CommandContext } from '../shared/context.ts';
import { count, isTerminal, plural } from '../shared/format.ts';
import { sourceUntil } from '../shared/input-stream.ts';
import { type CredentialInput, isNdjson, readCredentials } from './input.ts';
import { type CredentialOutput, toStream } from './output.ts';
import { toFile } from './output-file.ts';
import type { Resumed } from './resume.ts';

interface VerifyOptions {
  readonly out?: string;
  readonly json?: boolean;
  readonly restart?: boolean;
}

/** What came of it, in numbers. */
interface Tally {
  verified: number;
  requests: number;
  readonly refused: Map<string, number>;
}

function summary({ verified, requests, refused }: Tally, before: number): string {
  const codes = [...refused].map(([code, accounts]) => `${code}: ${count(accounts)}`).join(', ');
  const failed = [...refused.values()].reduce((sum, accounts) => sum + accounts, 0);
  const known = before === 0 ? '' : `, ${count(before)} known from before`;
  return `${count(verified)} verified, ${count(failed)} not${codes === '' ? '' : ` (${codes})`}${known}, ${plural(requests, 'request')}\n`;
}

function add(tally: Tally, results: readonly CredentialResult[]): void {
  tally.requests++;
  for (const result of results) {
    if (result.ok) tally.verified++;
    else
      tally.refused.set(`code ${result.code ?? 'none'}`, (tally.refused.get(`code ${result.code ?? 'none'}`) ?? 0) + 1);
  }
}

/** A bar over the bytes of the input, on a terminal. */
function progressOf(context: CommandContext, { size }: CredentialInput) {
  if (size === null || !isTerminal(context.stderr)) return { update: () => {}, stop: () => {} };
  const format = '{bar} {percentage}% · {accounts} accounts · {requests}';
  const bar = new SingleBar(
    { stream: context.stderr, format, barsize: 24, hideCursor: true, clearOnComplete: true },
    Presets.shades_classic,
  );
  bar.start(size, 0, { accounts: '0', requests: '' });
  return {
    update: (end: number, accounts: number, requests: number) => {
      bar.update(end, { accounts: count(accounts), requests: plural(requests, 'request') });
    },
    stop: () => bar.stop(),
  };
}

type Output = CredentialOutput & Pick<Resumed, 'done' | 'open'>;

async function outputFor(
  context: CommandContext,
  { out, json, restart = false }: VerifyOptions,
  { baseUrl, apiKey }: AskedService,
  input: CredentialInput,
): Promise<Output> {
  if (out === undefined) return { ...toStream(context.stdout, json === true ? 'ndjson' : 'csv'), done: 0, open: [] };
  const format = isNdjson(out) ? 'ndjson' : 'csv';
  return await toFile({ path: out, format, restart, baseUrl, apiKey }, input);
}

async function verify(context: CommandContext, file: string, options: VerifyOptions): Promise<void> {
  if (options.out === undefined && options.restart === true) {
    throw new CatchwordError('USAGE', '--restart is about the file of --out', {
      hint: 'Name it, or leave --restart away.',
    });
  }
  if (options.out !== undefined && options.json === true) {
    throw new CatchwordError('USAGE', '--json is about what is printed, and --out prints nothing', {
      hint: 'Leave --json away; a file called .ndjson or .jsonl is written as NDJSON.',
    });
  }
  await withService(context, async ({ caller }, config) => {
    const input = await readCredentials(file, (path) => sourceUntil(context, path));
    try {
      const output = await outputFor(context, options, config, input);
      await verifyInput(context, options, caller, input, output);
    } finally {
      await input.submissions.return?.();
    }
  });
}

async function verifyInput(
  context: CommandContext,
  options: VerifyOptions,
  caller: Caller,
  input: CredentialInput,
  output: Output,
): Promise<void> {
  const tally: Tally = { verified: 0, requests: 0, refused: new Map() };
  const progress = progressOf(context, input);
  let [end, accounts] = [0, output.done];
  async function* submissions() {
    for (const { submission } of output.open) {
      output.submitted(submission);
      yield submission;
    }
    for await (const submitted of input.submissions) {
      end = submitted.end;
      output.submitted(submitted.submission);
      yield submitted.submission;
    }
  }
  try {
    for await (const results of verifyInBatches(caller, submissions(), context.signal, output.done)) {
      await output.write(results);
      add(tally, results);
      accounts += results.length;
      progress.update(end, accounts, tally.requests);
    }
    if (context.signal.aborted) throw new CatchwordError('INTERRUPTED', 'interrupted');
    await output.finish();
  } catch (error) {
    throw brokenOff(error, accounts, options);
  } finally {
    progress.stop();
    await output.close();
  }
  context.stderr.write(summary(tally, output.done));
  if (tally.requests > 0 || output.done === 0) return;
  context.stderr.write(`${options.out} is complete already: nothing was asked; --restart begins anew\n`);
}

/** Says what is kept, and how to go on with it. */
function brokenOff(error: unknown, accounts: number, { out, restart }: VerifyOptions): unknown {
  if (!(error instanceof CatchwordError)) return error;
  const isKept = out !== undefined && accounts > 0;
  const again = `started again with --out ${out}${restart === true ? ', without --restart,' : ''} it goes on there`;
  if (error.code === 'INTERRUPTED') {
    const goOn = isKept ? `; ${again}` : '';
    return new CatchwordError('INTERRUPTED', `interrupted after ${plural(accounts, 'account')}${goOn}`);
  }
  if (!isKept) return error;
  const hint = `${error.hint ?? ''} What came of ${plural(accounts, 'account')} is kept: ${again}.`.trim();
  return fromErrorRecord({ ...toErrorRecord(error), hint });
}

export function credentialsCommand(context: CommandContext): Command {
  const verifyCommand = new Command('verify')
    .description(`verify users and fetch their access tokens, ${count(MAX_CREDENTIALS)} a request`)
    .argument('<file>', 'CSV with a column reference, guid or access-token; NDJSON (.ndjson, .jsonl); - for stdin')
    .option('--out <file>', 'where results go, as CSV or NDJSON by its ending; an earlier run is continued')
    .option('--restart', 'begin anew: throw the results of an earlier run in --out away')
    .option('--json', 'without --out: print NDJSON in place of CSV')
    .action((file: string, options: VerifyOptions) => verify(context, file, options));
  return new Command('credentials')
    .description('verify users that this API key created')
    .enablePositionalOptions()
    .addCommand(verifyCommand);
}
