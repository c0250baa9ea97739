import { usageError } from '@catchword/base/errors';
import type { Tried } from '../../../contract/try-store.ts';
import { secretsIn, sinkConfig } from '../../../relay/sink-config.ts';
import { loadSettings } from './checked-settings.ts';
import type { CommandContext } from './command-context.ts';
import { colours, type JsonOption, print, printLine } from './output-format.ts';

const SECRET = '{secret}';

/** @throws CatchwordError USAGE if the command line has a secret, which every user of the machine can read */
function requireNoSecret(address: string): void {
  // Too short to be a secret.
  if (secretsIn(address.replaceAll(SECRET, '***')).length === 0) return;
  const hint = `Write ${SECRET} in its place, and set CATCHWORD_CONTRACT_SECRET, or CATCHWORD_CONTRACT_SECRET_FILE.`;
  throw usageError('the address has a secret, which other users of this machine can read there', hint);
}

/** Runs the contract of sinks against a scratch store, and prints what became of each check. */
export async function trySink(
  context: CommandContext,
  address: string,
  { module, ...options }: JsonOption & { readonly module?: string },
): Promise<void> {
  const { contractSecret: secret } = loadSettings(context, 'nothing');
  requireNoSecret(address);
  if (secret === undefined && address.includes(SECRET)) {
    throw usageError(`CATCHWORD_CONTRACT_SECRET is not set, and the address has ${SECRET}`, 'Set it, or its _FILE.');
  }
  const url = address.replaceAll(SECRET, encodeURIComponent(secret ?? ''));
  const setting = { env: 'URL', name: 'contract', url, secret, module };
  const { address: store, kind } = sinkConfig(setting);
  context.stderr.write(`${kind} ${store}: writes products of its own, and removes the store after each check\n`);
  const c = colours(context);
  const paint = { passed: c.green, failed: c.red, skipped: c.yellow };
  const { tryStore } = await import('../../../contract/try-store.ts');
  const tried: Tried[] = [];
  for await (const one of tryStore(setting, context.signal)) {
    tried.push(one);
    const { check, result, reason } = one;
    if (result === 'failed') context.setExitCode(1);
    if (options.json !== true)
      printLine(context, [`${paint[result](result.padEnd(7))}  ${check}`, reason ?? []].flat().join(': '));
  }
  const count = (result: string): number => tried.filter((one) => one.result === result).length;
  const text = `${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped`;
  print(context, options, { json: { kind, store, checks: tried }, text });
}
