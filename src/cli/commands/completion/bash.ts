import { type Level, pattern, quoted, stepsOf, valuesOf } from './verb-tree.ts';

function list(words: readonly string[]): string {
  return quoted(words.join(' '));
}

/** Writes a completion script for bash 3.2 or newer. */
export function bashScript(levels: readonly Level[]): string {
  const { closed, free } = valuesOf(levels);
  const branches = levels.map(({ path, words, options }) => {
    const flags = options.flatMap((option) => option.flags);
    return `    ${quoted(path)}) words=${list(words.map(({ name }) => name))} options=${list(flags)} ;;`;
  });
  return `# Completion of catchword for bash.
_catchword() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} at='' word words='' options=''
  # bash makes three words of --option=value.
  if [[ $current == = ]]; then current=''
  elif [[ $previous == = ]]; then previous=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at $word" in
      ${pattern(stepsOf(levels))}) at="\${at:+$at }$word" ;;
    esac
  done
  case $at in
${branches.join('\n')}
  esac
  [[ $current == -* ]] && words=$options
  case "$at $previous" in
${closed.map(({ at, values: known }) => `    ${pattern(at)}) words=${list(known)} ;;`).join('\n')}
    # Any value: complete the names of files.
    ${pattern(free)}) words='' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _catchword catchword
`;
}
