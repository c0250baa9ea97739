import { once } from 'node:events';
import { usageError } from '@catchword/base/errors';
import { FAULT_KINDS } from '@catchword/sandbox/http/faults';
import type { RateLimit } from '@catchword/sandbox/http/rate-limit';
import { introduction, introductionText } from '@catchword/sandbox/introduction';
import { LIST_ORDERS, SANDBOX_DEFAULTS, type SandboxOptions } from '@catchword/sandbox/options';
import { startSandbox } from '@catchword/sandbox/sandbox-server';
import { OPTIONS } from '@catchword/settings/option-table';
import { Command, Option } from 'commander';
import type { z } from 'zod';
import type { CommandContext } from './shared/command-context.ts';
import { type JsonOption, wholeNumber } from './shared/output-format.ts';

type Preset = 'items' | 'seed' | 'port' | 'order' | 'maxPerPage' | 'users';
type Names = 'apiKeyHeader' | 'accessTokenHeader' | 'booksPath' | 'packagesPath';
type Optional = 'details' | 'faults' | 'db' | 'allowPrivateCallbacks' | 'strict';

interface Flags extends JsonOption, Pick<SandboxOptions, Preset | Names>, Partial<Pick<SandboxOptions, Optional>> {
  readonly latency: number;
  readonly rateLimit?: RateLimit;
  readonly churn: number;
  readonly lean?: true;
}

function rate(name: string, text: string, form: RegExp, example: string): [amount: number, unit: string | undefined] {
  const [, amount, unit] = form.exec(text) ?? [];
  if (amount !== undefined) return [Number(amount), unit];
  throw usageError(`${name}: ${JSON.stringify(text)} is not a rate`, `Use a rate such as ${example}.`);
}

function rateLimit(text: string): RateLimit {
  const [maxRequests, unit] = rate('--rate-limit', text, /^([1-9]\d*)\/(min|s)$/, '50/min or 10/s');
  return { maxRequests, windowMs: unit === 's' ? 1_000 : 60_000 };
}

/** Parses a name that a setting of catchword can have too. */
function named(flag: string, { schema }: { readonly schema: z.ZodType<string> }): (text: string) => string {
  return (text) => {
    const { success, data } = schema.safeParse(text);
    if (success) return data;
    throw usageError(`${flag}: ${JSON.stringify(text)} cannot be used`, `It must be ${schema.description}.`);
  };
}

/** `catchword sandbox`: serves until the context's signal aborts. */
export function sandboxCommand(context: CommandContext): Command {
  const defaults = SANDBOX_DEFAULTS;
  const command = new Command('sandbox');
  const whole = (name: string, value: string, help: string, preset: number, max: number, min = 0) =>
    command.option(`${name} <${value}>`, help, wholeNumber(name, min, max), preset);
  const churn = (text: string) => rate('--churn', text, /^(\d+(?:\.\d+)?)(?:\/s)?$/, '10/s')[0];
  whole('--items', 'n', 'number of products at the start', defaults.items, 10_000_000);
  whole('--seed', 'n', 'the same seed gives the same catalog', defaults.seed, 2 ** 32 - 1);
  whole('--port', 'n', 'port on 127.0.0.1; 0 takes any free one', 4010, 65_535);
  whole('--latency', 'ms', 'wait before each reply', defaults.latencyMs, 3_600_000);
  whole('--users', 'n', 'number of reference users at the start', defaults.users, 10_000_000);
  whole('--max-per-page', 'n', 'return pages of at most this many products', defaults.maxPerPage, 1000, 1);
  const name = (flag: string, form: string, help: string, key: Names) =>
    command.option(`${flag} <${form}>`, help, named(flag, OPTIONS[key]), defaults[key]);
  name('--api-key-header', 'name', 'header of the API key', 'apiKeyHeader');
  name('--access-token-header', 'name', 'header of the access token', 'accessTokenHeader');
  name('--books-path', 'path', 'path of the book operations', 'booksPath');
  name('--packages-path', 'path', 'path of the package operations', 'packagesPath');
  return command
    .option('--rate-limit <n/min>', 'reject requests above this rate, such as 50/min or 10/s', rateLimit)
    .option('--churn <n/s>', 'change this many products a second, such as 10/s', churn, defaults.churnPerSecond)
    .option('--details', 'return products of 2 KB, with titles to search for (the default)')
    .option('--no-details', 'return products of 110 bytes: only vbid and identifiers')
    .option('--lean', 'the same as --no-details')
    .addOption(new Option('--order <order>', 'order of the list').choices(LIST_ORDERS).default(defaults.order))
    .option('--faults <spec>', `kind, kind:probability or kind@request, comma-separated: ${FAULT_KINDS.join(', ')}`)
    .option('--db <file>', 'keep all changes in a file, for the next start with the same seed, items and users')
    .option('--allow-private-callbacks', 'also call a callback_url that is a private address')
    .option('--strict', 'enforce the documented Accept and Content-Type headers')
    .option('--json', 'print one JSON document')
    .action(async (flags: Flags) => {
      const { latency: latencyMs, churn: churnPerSecond, lean, details: detailed = true, json, ...same } = flags;
      const details = lean !== true && detailed;
      const sandbox = await startSandbox({ ...same, latencyMs, churnPerSecond, details, clock: context.clock });
      const about = introduction(sandbox, flags);
      context.stdout.write(json ? `${JSON.stringify(about)}\n` : introductionText(about));
      if (!context.signal.aborted) await once(context.signal, 'abort');
      await sandbox.stop();
    });
}
