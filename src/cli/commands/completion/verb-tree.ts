import type { Command } from 'commander';

export type Level = ReturnType<typeof levelOf>;

/**
 * The words that can follow a command: commands, or the values of an argument if they are a closed list; and options, with
 * their values in the same case.
 * @param path the words that lead to it: `sink list`; empty for the program itself
 */
function levelOf(command: Command, path: string) {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).map((one) => ({ name: one.name(), summary: one.description() }));
  const values = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  const options = help.visibleOptions(command).map((option) => {
    const flags = [option.short, option.long].filter((flag) => flag !== undefined && flag !== null);
    const { description: summary, required, optional, argChoices = [] } = option;
    return { summary, flags, takesValue: required || optional, values: argChoices };
  });
  return { path, words: [...commands, ...values.map((name) => ({ name, summary: '' }))], options };
}

/** Lists a command and all commands below it. `help` is left out: what follows it is what follows its parent. */
export function levelsOf(command: Command, path = ''): Level[] {
  const below = command.commands.filter((one) => one.name() !== 'help');
  return [levelOf(command, path), ...below.flatMap((one) => levelsOf(one, `${path} ${one.name()}`.trim()))];
}

/** The options that take a value, as `<path> <flag>`: with the values of a closed list (`closed`), or any (`free`). */
export function valuesOf(levels: readonly Level[]) {
  const all = levels.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ flags, values }) => ({ at: flags.map((flag) => `${path} ${flag}`), values })),
  );
  return {
    closed: all.filter(({ values }) => values.length > 0),
    free: all.flatMap(({ at, values }) => (values.length > 0 ? [] : at)),
  };
}

/** Each step from a command to one below it, as `<path> <name>`. */
export function stepsOf(levels: readonly Level[]): string[] {
  return levels.flatMap(({ path }) => (path === '' ? [] : [path.includes(' ') ? path : ` ${path}`]));
}

/** Quotes a text as one word of a shell: sh, bash and zsh. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A pattern of `case` in bash and zsh. */
export function pattern(words: readonly string[]): string {
  return words.map(quoted).join('|');
}
