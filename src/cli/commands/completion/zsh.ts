import { type Level, pattern, quoted, stepsOf, valuesOf } from './verb-tree.ts';

function described({ name, summary }: Level['words'][number]): string {
  return quoted(summary === '' ? name : `${name}:${summary}`);
}

/** Writes a completion script for zsh, to be sourced or to be found in `fpath` as `_catchword`. */
export function zshScript(levels: readonly Level[]): string {
  const { closed, free } = valuesOf(levels);
  const branches = levels.map(({ path, words, options }) => {
    const flags = options.flatMap(({ flags: names, summary }) => names.map((name) => described({ name, summary })));
    return `    ${quoted(path)}) names=(${words.map(described).join(' ')}); flags=(${flags.join(' ')}) ;;`;
  });
  return `#compdef catchword
# Completion of catchword for zsh.
_catchword() {
  local at='' word previous=$words[CURRENT-1]
  local -a names flags
  compset -P '--*=' && previous=\${IPREFIX%=}
  for word in $words[2,CURRENT-1]; do
    case "$at $word" in
      ${pattern(stepsOf(levels))}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at $previous" in
${closed.map(({ at, values: known }) => `    ${pattern(at)}) compadd -- ${known.map(quoted).join(' ')}; return ;;`).join('\n')}
    ${pattern(free)}) _files; return ;;
  esac
  case $at in
${branches.join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then _describe -o option flags
  elif (( $#names )); then _describe command names
  else _files
  fi
}
if [[ $funcstack[1] == _catchword ]]; then _catchword "$@"
else compdef _catchword catchword
fi
`;
}
