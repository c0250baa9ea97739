import { usageError } from '@catchword/base/errors';
import { nearestName } from '@catchword/base/nearest-name';
import { Command } from 'commander';

function unknown(name: string, parent: Command): Error {
  const names = parent.commands.map((command) => command.name());
  const nearest = nearestName(name, names);
  const hint = nearest === undefined ? `Commands are: ${names.join(', ')}.` : `Did you mean ${nearest}?`;
  return usageError(`unknown command ${JSON.stringify(name)}`, hint);
}

/** `help sink list`. Commander's own help knows one level only, and prints all help for an unknown name. */
export function helpCommand(): Command {
  return new Command('help')
    .argument('[command...]', 'such as: sync, or: sink list')
    .action((names: string[], _options, self: Command) => {
      let command = self.parent ?? self;
      for (const name of names) {
        const next = command.commands.find((one) => one.name() === name);
        if (next === undefined) throw unknown(name, command);
        command = next;
      }
      command.help();
    });
}
