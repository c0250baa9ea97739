import { Command } from 'commander';
import { sourceIdentity } from '../catalog/source.ts';
import type { SourceConfig } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import { LEASES } from '../store/lease.ts';
import type { NotedSource } from '../store/source.ts';
import { openStore } from '../store/store.ts';
import type { CommandContext } from './shared/context.ts';
import { printJson, printLine } from './shared/format.ts';
import { loadSettings } from './shared/settings.ts';
import { runOnce } from './sync.ts';

/**
 * The source that the mirror has noted.
 * @throws CatchwordError MIRROR_BUSY where a daemon is alive, or a process feeds sinks with events that name the source
 */
function notedSource(context: CommandContext, config: SourceConfig): NotedSource | null {
  const store = openStore(config.db, { mustExist: true, mode: config.dbMode });
  try {
    const nowMs = context.clock.now();
    const daemon = store.daemonLease.holder(nowMs);
    const holder = daemon ?? store.relayLease.holder(nowMs);
    if (holder !== null) {
      const doing = daemon === null ? LEASES.relay.doing : LEASES.daemon.doing;
      throw new CatchwordError('MIRROR_BUSY', `process ${holder.pid} on ${holder.host} ${doing}`, {
        hint: 'Stop the daemon (or the keeper and the relay), adopt the new address, and start it again.',
      });
    }
    return store.source.noted();
  } finally {
    store.close();
  }
}

/** `catchword adopt`: the way on for a mirror whose service has another address now. */
export function adoptCommand(context: CommandContext): Command {
  return new Command('adopt')
    .description('continue the mirror with the address that is set now: for a service that has moved; makes a full run')
    .option('--json', 'print the run as one JSON document')
    .action(async ({ json = false }: { json?: boolean }) => {
      const config = loadSettings(context, 'source');
      const { address } = sourceIdentity(config);
      const noted = notedSource(context, config);
      const isNew = noted !== null && noted.address !== address;
      if (!isNew && noted?.unfinished !== true) {
        if (json) printJson(context, { adopted: false, address });
        else printLine(context, `nothing to adopt: ${address} is the address of this mirror's service`);
        return;
      }
      context.stderr.write(
        isNew
          ? `${config.db} was read from ${noted.address} and is continued with ${address}: everything is read again; ` +
              'products that are not there are removed, within CATCHWORD_REMOVAL_LIMIT\n'
          : `the reading of ${address} was begun and has not ended: it goes on\n`,
      );
      await runOnce(context, config, { json, adopting: isNew }, (keeper) =>
        isNew ? keeper.adopt(context.signal) : keeper.run({ kind: 'full' }, context.signal),
      );
    });
}
