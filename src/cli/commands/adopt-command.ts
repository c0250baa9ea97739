import { Command } from 'commander';
import { CatchwordError } from '../../base/errors.ts';
import { sourceIdentity } from '../../catalog/source-identity.ts';
import { LEASES } from '../../store/schema/lease.ts';
import type { Store } from '../../store/store.ts';
import { withMirror } from '../roles/open-mirror.ts';
import { loadSettings } from './shared/checked-settings.ts';
import type { CommandContext } from './shared/command-context.ts';
import { type JsonOption, print } from './shared/output-format.ts';
import { runOnce } from './sync-command.ts';

/** @throws CatchwordError MIRROR_BUSY if a daemon is active, or a relay delivers events that name the source */
function requireIdle({ daemonLease, relayLease }: Store, nowMs: number): void {
  const daemon = daemonLease.holder(nowMs);
  const holder = daemon ?? relayLease.holder(nowMs);
  if (holder === null) return;
  const { doing } = daemon === null ? LEASES.relay : LEASES.daemon;
  throw new CatchwordError('MIRROR_BUSY', `process ${holder.pid} on ${holder.host} ${doing}`, {
    hint: 'Stop the daemon (or the keeper and the relay), adopt the new address, and start it again.',
  });
}

export function adoptCommand(context: CommandContext): Command {
  return new Command('adopt')
    .option('--json', 'print the run as one JSON document')
    .action(async (options: JsonOption) => {
      const config = loadSettings(context, 'source');
      const { address } = sourceIdentity(config);
      const noted = await withMirror(config, false, (store) => {
        requireIdle(store, context.clock.now());
        return store.source.noted();
      });
      const adopting = noted !== null && noted.address !== address;
      if (!adopting && noted?.unfinished !== true) {
        const text = `nothing to adopt: ${address} is the address of this mirror's service`;
        return print(context, options, { json: { adopted: false, address }, text });
      }
      const notice = adopting
        ? `${config.db} was read from ${noted.address} and is continued with ${address}: everything is read again; ` +
          'products that are not there are removed, within CATCHWORD_REMOVAL_LIMIT'
        : `resuming the unfinished full run of ${address}`;
      context.stderr.write(`${notice}\n`);
      await runOnce(context, config, { ...options, adopting }, (keeper) =>
        adopting ? keeper.adopt(context.signal) : keeper.run({ kind: 'full' }, context.signal),
      );
    });
}
