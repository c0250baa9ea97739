import { Command } from 'commander';
import { nearestName } from '../client/input/input-error.ts';
import { CatchwordError } from '../errors.ts';

function unknown(name: string, parent: Command): CatchwordError {
  const names = parent.commands.map((command) => command.name());
  const nearest = nearestName(name, names);
  return new CatchwordError('USAGE', `unknown command ${JSON.stringify(name)}`, {
    hint: nearest === undefined ? `There is: ${names.join(', ')}.` : `Did you mean ${nearest}?`,
  });
}

/** `help sink list`: commander's own knows one level, and answers a name that it does not know with all help there is. */
export function helpCommand(root: Command): Command {
  return new Command('help')
    .description('show help for a command')
    .argument('[command...]', 'such as: sync, or: sink list')
    .action((names: string[]) => {
      let command = root;
      for (const name of names) {
        const next = command.commands.find((one) => one.name() === name);
        if (next === undefined) throw unknown(name, command);
        command = next;
      }
      command.help();
    });
}
