import { once } from 'node:events';
import { Command, Option } from 'commander';
import { CatchwordError } from '../errors.ts';
import { plural } from '../report/text.ts';
import { READER } from '../sandbox/accounts/directory.ts';
import type { ListOrder } from '../sandbox/catalog/catalog.ts';
import { FAULT_KINDS } from '../sandbox/http/faults.ts';
import type { RateLimit } from '../sandbox/http/rate-limit.ts';
import { SANDBOX_DEFAULTS } from '../sandbox/options.ts';
import { type Sandbox, startSandbox } from '../sandbox/server.ts';
import { wholeNumber } from '../whole-number.ts';
import type { CommandContext } from './shared/context.ts';

interface Flags {
  readonly items: number;
  readonly seed: number;
  readonly port: number;
  readonly latency: number;
  readonly rateLimit?: RateLimit;
  readonly churn?: number;
  readonly details?: boolean;
  readonly lean?: true;
  readonly order: ListOrder;
  readonly maxPerPage: number;
  readonly faults: string;
  readonly users: number;
  readonly db?: string;
  readonly allowPrivateCallbacks?: true;
  readonly strict?: true;
  readonly json?: true;
}

const ORDERS: readonly ListOrder[] = ['id', 'updated-asc', 'updated-desc'];

function invalid(flag: string, text: string, needed: string): CatchwordError {
  return new CatchwordError('USAGE', `${flag}: "${text}" is not ${needed}`, { hint: `Use ${needed}.` });
}

function whole(flag: string, max: number, min = 0): (text: string) => number {
  return (text) => {
    const value = wholeNumber(text, min, max);
    if (value === null) throw invalid(flag, text, `a whole number from ${min} to ${max}`);
    return value;
  };
}

function rateLimit(text: string): RateLimit {
  const [, amount, unit] = /^([1-9]\d*)\/(min|s)$/.exec(text) ?? [];
  if (amount === undefined) throw invalid('--rate-limit', text, 'a rate such as 50/min or 10/s');
  return { maxRequests: Number(amount), windowMs: unit === 's' ? 1_000 : 60_000 };
}

function churnPerSecond(text: string): number {
  const [, amount] = /^(\d+(?:\.\d+)?)(?:\/s)?$/.exec(text) ?? [];
  if (amount === undefined) throw invalid('--churn', text, 'a rate such as 10/s');
  return Number(amount);
}

function listOrder(text: string): ListOrder {
  const order = ORDERS.find((known) => known === text);
  if (order === undefined) throw invalid('--order', text, `one of ${ORDERS.join(', ')}`);
  return order;
}

/** Everything that a person or a program needs to call the sandbox. */
function introduction(sandbox: Sandbox, flags: Flags) {
  const { otherApiKey, apiKeyHeader, accessTokenHeader } = SANDBOX_DEFAULTS;
  const apiKey = sandbox.apiKey();
  const { accessToken, otherAccessToken } = sandbox.readerTokens();
  const limit = flags.rateLimit;
  const environment = {
    CATCHWORD_BASE_URL: sandbox.url,
    CATCHWORD_API_KEY: apiKey,
    CATCHWORD_ACCESS_TOKEN: accessToken,
    CATCHWORD_USER_REFERENCE: READER,
    // The sandbox shows every change at once, in lists and in deltas.
    CATCHWORD_DELTA_OVERLAP: '1s',
    CATCHWORD_RATE_LIMIT:
      limit === undefined ? 'off' : `${limit.maxRequests}/${limit.windowMs === 1_000 ? 's' : 'min'}`,
  };
  const key = `-H '${apiKeyHeader}: ${apiKey}'`;
  const both = `${key} -H '${accessTokenHeader}: ${accessToken}'`;
  const asset = JSON.stringify({ imprint_id: 1, title: 'Tides' });
  const examples = {
    catalog: `curl -s ${both} -H 'Content-Type: application/json' '${sandbox.url}/v4/products?per_page=2'`,
    asset: `curl -s -X PUT ${key} -H 'Accept: application/json' -d '${asset}' '${sandbox.url}/v4/assets/L-999-70031'`,
    licenses: `curl -s ${both} '${sandbox.url}/v3/licenses.xml'`,
  };
  const other = { apiKey: otherApiKey, accessToken: otherAccessToken };
  const { url, port } = sandbox;
  const { items, users } = flags;
  const about = { url, port, apiKey, accessToken, reference: READER, other, items, users };
  return { ...about, environment, curl: examples.catalog, examples };
}

function inWords({ url, items, environment, examples, ...about }: ReturnType<typeof introduction>) {
  const { apiKey, accessToken, reference, other, users } = about;
  const others = users === 0 ? '' : `, and user-0000001 to user-${String(users).padStart(7, '0')}`;
  const exports = Object.entries(environment).map(([name, value]) => `export ${name}=${value}`);
  return `The sandbox answers at ${url} with ${plural(items, 'product')}, until Ctrl-C.
API key ${apiKey}, access token ${accessToken}
API key ${other.apiKey}, access token ${other.accessToken}: another caller, who owns nothing yet
Users of the first key: ${reference}, who has that token${others}
Description: ${url}/openapi.json

${exports.join('\n')}

${examples.catalog}
${examples.asset}
${examples.licenses}
`;
}

/** `catchword sandbox`: serves until the context's signal aborts. */
export function sandboxCommand(context: CommandContext): Command {
  const { items, seed, latencyMs, order, maxPerPage, faults, users } = SANDBOX_DEFAULTS;
  const option = <T>(flags: string, help: string, parse: (text: string) => T) =>
    new Option(flags, help).argParser(parse);
  return new Command('sandbox')
    .description('run a stand-in for the service on this machine')
    .addOption(option('--items <n>', 'number of products at the start', whole('--items', 10_000_000)).default(items))
    .addOption(option('--seed <n>', 'the same seed gives the same catalog', whole('--seed', 2 ** 32 - 1)).default(seed))
    .addOption(option('--port <n>', 'port on 127.0.0.1; 0 takes any free one', whole('--port', 65_535)).default(4010))
    .addOption(option('--latency <ms>', 'wait before each reply', whole('--latency', 3_600_000)).default(latencyMs))
    .addOption(option('--rate-limit <n/min>', 'reject requests above this rate, such as 50/min or 10/s', rateLimit))
    .addOption(option('--churn <n/s>', 'change this many products a second, such as 10/s', churnPerSecond))
    .option('--details', 'return products of 2 KB, with titles to search for (the default)')
    .option('--no-details', 'return products of 110 bytes: only vbid and identifiers')
    .option('--lean', 'the same as --no-details')
    .addOption(option('--order <order>', `order of the list: ${ORDERS.join(', ')}`, listOrder).default(order))
    .addOption(
      option(
        '--max-per-page <n>',
        'return pages of at most this many products',
        whole('--max-per-page', 1000, 1),
      ).default(maxPerPage),
    )
    .addOption(
      new Option(
        '--faults <spec>',
        `kind, kind:probability or kind@request, comma-separated: ${FAULT_KINDS.join(', ')}`,
      ).default(faults, 'none'),
    )
    .addOption(
      option('--users <n>', 'number of reference users at the start', whole('--users', 10_000_000)).default(users),
    )
    .option('--db <file>', 'keep all changes in a file, for the next start with the same seed, items and users')
    .option('--allow-private-callbacks', 'also call a callback_url that is a private address')
    .option('--strict', 'enforce the documented Accept and Content-Type headers')
    .option('--json', 'print one JSON document')
    .action(async (flags: Flags) => {
      const sandbox = await startSandbox({
        items: flags.items,
        seed: flags.seed,
        port: flags.port,
        latencyMs: flags.latency,
        rateLimit: flags.rateLimit ?? null,
        churnPerSecond: flags.churn ?? 0,
        details: flags.lean !== true && (flags.details ?? true),
        order: flags.order,
        maxPerPage: flags.maxPerPage,
        faults: flags.faults,
        users: flags.users,
        db: flags.db ?? null,
        allowPrivateCallbacks: flags.allowPrivateCallbacks ?? false,
        strict: flags.strict ?? false,
        clock: context.clock,
      });
      const about = introduction(sandbox, flags);
      context.stdout.write(flags.json ? `${JSON.stringify(about)}\n` : inWords(about));
      if (!context.signal.aborted) await once(context.signal, 'abort');
      await sandbox.stop();
    });
}
