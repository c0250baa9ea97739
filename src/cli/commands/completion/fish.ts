import type { Level } from './verb-tree.ts';

function quoted(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`;
}

function flagsOf({ flags, takesValue, values }: Level['options'][number]): string {
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
  const closed = values.length > 0 ? ['-x', `-a ${quoted(values.join(' '))}`] : [];
  return [...names, ...(takesValue && values.length === 0 ? ['-r'] : closed)].join(' ');
}

/** Writes a completion script for fish 3 or newer. */
export function fishScript(levels: readonly Level[]): string {
  const lines = levels.flatMap(({ path, words, options }) => {
    const start = `complete -c catchword -n ${quoted(`__catchword_at ${quoted(path)}`)}`;
    return [
      ...words.map(({ name, summary }) => `${start} -f -a ${name} -d ${quoted(summary)}`),
      ...options.map((option) => `${start} ${flagsOf(option)} -d ${quoted(option.summary)}`),
    ];
  });
  const paths = levels.flatMap(({ path }) => (path === '' ? [] : [quoted(path)]));
  return `# Completion of catchword for fish.
function __catchword_at
    set -l paths ${paths.join(' ')}
    set -l at ''
    for word in (commandline -opc)[2..]
        set -l next (string trim -- "$at $word")
        contains -- $next $paths; and set at $next
    end
    test "$at" = "$argv[1]"
end
${lines.join('\n')}
`;
}
