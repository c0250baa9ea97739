import { Command } from 'commander';
import { sourceIdentity } from '../catalog/source.ts';
import type { SourceConfig } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import { openStore } from '../store/store.ts';
import type { CommandContext } from './context.ts';
import { printJson, printLine } from './format.ts';
import { loadSettings } from './settings.ts';
import { runOnce } from './sync.ts';

/**
 * The address that the mirror has noted.
 * @throws CatchwordError MIRROR_BUSY where a process feeds sinks with events that name it
 */
function notedAddress(context: CommandContext, config: SourceConfig): string | null {
  const store = openStore(config.db, { mustExist: true, mode: config.dbMode });
  try {
    const relay = store.relayLease.holder(context.clock.now());
    if (relay !== null) {
      throw new CatchwordError('MIRROR_BUSY', `process ${relay.pid} on ${relay.host} feeds the sinks of this mirror`, {
        hint: 'Stop the daemon (or the relay), adopt the new address, and start it again.',
      });
    }
    return store.source.noted()?.address ?? null;
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
      const noted = notedAddress(context, config);
      if (noted === null || noted === address) {
        if (json) printJson(context, { adopted: false, address });
        else printLine(context, `nothing to adopt: ${address} is the address of this mirror's service`);
        return;
      }
      context.stderr.write(
        `${config.db} was read from ${noted} and is continued with ${address}: everything is read again; ` +
          'products that are not there are removed, within CATCHWORD_REMOVAL_LIMIT\n',
      );
      await runOnce(context, config, { json, adopting: true }, (keeper) => keeper.adopt(context.signal));
    });
}
