import { LICENSE_TYPES, type License, type LicenseQuery, readLicenses } from 'catchword-client/licenses/licenses';
import { Command, Option } from 'commander';
import { count, plural, table } from '../../report/text.ts';
import type { CommandContext } from './shared/command-context.ts';
import { plain } from './shared/output-format.ts';
import { serviceCommand } from './shared/service-connection.ts';

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
  const command = new Command('licenses')
    .option('--sku <sku>', 'list only licenses for this title', (sku) => sku.trim())
    .addOption(new Option('--type <type>', 'list only this type').choices(LICENSE_TYPES));
  return serviceCommand(context, command, async ({ caller, signal }, { sku, type }: LicenseQuery) => {
    const held = await readLicenses(caller, { sku, type }, signal);
    const { licenses, total, distributable } = held;
    const none = sku === undefined ? 'the account holds no license' : `${sku} is not licensed`;
    const text = [licenses.length === 0 ? none : licenseTable(licenses, context.clock.now())];
    const accessible = distributable === undefined ? '' : `, ${count(distributable)} accessible here`;
    if (total !== undefined) text.push(`${plural(total, 'license')} in the account${accessible}`);
    return { json: held, text };
  });
}
