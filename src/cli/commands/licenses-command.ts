import { Command, Option } from 'commander';
import { LICENSE_TYPES, type License, type LicenseQuery, readLicenses } from '../../client/licenses/licenses.ts';
import { count, plural, table } from '../../report/text.ts';
import type { CommandContext } from './shared/command-context.ts';
import { type JsonOption, plain } from './shared/output-format.ts';
import { callService } from './shared/service-connection.ts';

function expiry({ expiresAt, expiration }: License, nowMs: number): string {
  if (expiresAt === null) return 'never';
  if (expiresAt === undefined) return expiration ?? 'unknown';
  // As it was written: a date alone is valid until its end, which is the next day.
  return `${plain(expiration ?? '')}${expiresAt <= nowMs ? ' (expired)' : ''}`;
}

function licenseTable(licenses: readonly License[], nowMs: number): string {
  const rows = licenses.map((license) => {
    const { sku, type, name, publisher } = license;
    return [sku, type, expiry(license, nowMs), name, publisher].map((cell) => (cell == null ? null : plain(cell)));
  });
  return table(['sku', 'type', 'expires', 'name', 'publisher'], rows);
}

export function licensesCommand(context: CommandContext): Command {
  return new Command('licenses')
    .option('--sku <sku>', 'list only licenses for this title', (sku) => sku.trim())
    .addOption(new Option('--type <type>', 'list only this type').choices(LICENSE_TYPES))
    .option('--json', 'print one JSON document')
    .action(({ json, ...query }: LicenseQuery & JsonOption) =>
      callService(context, { json }, async ({ caller }, _config, signal) => {
        const held = await readLicenses(caller, query, signal);
        const { licenses, total, distributable } = held;
        const none = query.sku === undefined ? 'the account holds no license' : `${query.sku} is not licensed`;
        const text = [licenses.length === 0 ? none : licenseTable(licenses, context.clock.now())];
        const accessible = distributable === undefined ? '' : `, ${count(distributable)} accessible here`;
        if (total !== undefined) text.push(`${plural(total, 'license')} in the account${accessible}`);
        return { json: held, text };
      }),
    );
}
