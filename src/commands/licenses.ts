import { Command, Option } from 'commander';
import { type License, type LicenseQuery, readLicenses } from '../client/licenses/licenses.ts';
import { withService } from './shared/connection.ts';
import type { CommandContext } from './shared/context.ts';
import { count, moment, plain, plural, printJson, printLine, table } from './shared/format.ts';

function expiry({ expiresAt, expiration }: License, nowMs: number): string {
  if (expiresAt === null) return 'never';
  if (expiresAt === undefined) return expiration ?? 'not said';
  return `${moment(expiresAt)}${expiresAt <= nowMs ? ' (expired)' : ''}`;
}

async function list(context: CommandContext, query: LicenseQuery & { readonly json?: boolean }): Promise<void> {
  await withService(context, async ({ caller }) => {
    const held = await readLicenses(caller, query, context.signal);
    if (query.json === true) {
      printJson(context, held);
      return;
    }
    const now = context.clock.now();
    if (held.licenses.length === 0) {
      printLine(context, query.sku === undefined ? 'the account holds no license' : `${query.sku} is not licensed`);
    } else {
      const rows = held.licenses.map((one) =>
        [one.sku, one.type, expiry(one, now), one.name, one.publisher].map((cell) =>
          cell == null ? null : plain(cell),
        ),
      );
      printLine(context, table(['sku', 'type', 'expires (UTC)', 'name', 'publisher'], rows));
    }
    if (held.total === undefined) return;
    const accessible = held.distributable === undefined ? '' : `, ${count(held.distributable)} accessible here`;
    printLine(context, `${plural(held.total, 'license')} in the account${accessible}`);
  });
}

export function licensesCommand(context: CommandContext): Command {
  return new Command('licenses')
    .description('list what the user of the access token holds')
    .option('--sku <sku>', 'this title alone', (sku) => sku.trim())
    .addOption(new Option('--type <type>', 'of these licenses alone').choices(['online', 'downloadable', 'all']))
    .option('--json', 'print one JSON document')
    .action((query: LicenseQuery & { readonly json?: boolean }) => list(context, query));
}
