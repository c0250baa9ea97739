import { Argument, Command } from 'commander';
import type { CommandContext } from '../shared/command-context.ts';
import { bashScript } from './bash.ts';
import { fishScript } from './fish.ts';
import { levelsOf } from './verb-tree.ts';
import { zshScript } from './zsh.ts';

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };

const USE = `
Add the line of your shell to its start file:
  bash  source <(catchword completion bash)
  zsh   source <(catchword completion zsh)      (after compinit)
  fish  catchword completion fish | source
Where catchword is not in PATH, add this line above it: alias catchword='npx catchword'`;

/** `catchword completion bash`. */
export function completionCommand(context: CommandContext): Command {
  return new Command('completion')
    .addArgument(new Argument('<shell>', 'your shell').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', USE)
    .action((shell: keyof typeof SCRIPTS, _options, self: Command) => {
      context.stdout.write(SCRIPTS[shell](levelsOf(self.parent ?? self)));
    });
}
