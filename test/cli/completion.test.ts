import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { VERBS } from '../../src/cli/verb-table.ts';
import { runHere } from '../support/in-process.ts';

const run = promisify(execFile);

/** In CI a missing shell fails its tests. */
const isMissing = (shell: string): boolean =>
  process.env.CI === undefined && spawnSync(shell, ['-c', 'true']).status !== 0;

async function script(shell: string): Promise<string> {
  const directory = temporaryDirectory();
  const { stdout, code } = await runHere(['completion', shell], {}, directory);
  expect(code).toBe(0);
  const path = join(directory, `completion.${shell}`);
  writeFileSync(path, stdout);
  return path;
}

/** Every command of docs/commands.md, with the commands and the options that its help lists. */
function documented(): { path: string; words: string[]; options: string[] }[] {
  const text = readFileSync(new URL('../../docs/commands.md', import.meta.url), 'utf8');
  const names = (list: string, pattern: RegExp): string[] => [...list.matchAll(pattern)].map(([, name = '']) => name);
  const helps = text.matchAll(/^Usage: catchword ([a-z -]+?)(?: [[<].*)?\n([\s\S]*?)^```/gm);
  // What follows `help` is what follows its parent.
  const own = [...helps].filter(([, path]) => path !== 'help');
  return own.map(([, path = '', body = '']) => ({
    path,
    words: names(body.split('Commands:\n')[1] ?? '', /^ {2}([a-z][a-z-]*) .*$/gm),
    options: names(body, /^ {2}(?:-\w, )?(--[a-z-]+)/gm),
  }));
}

const CLOSED = [
  ['licenses --type ', ['all', 'download', 'downloadable', 'online']],
  ['sandbox --order up', ['updated-asc', 'updated-desc']],
  ['completion ', ['bash', 'fish', 'zsh']],
] as const;

/** Presses Tab after each line as readline does: it finds the function, and passes the words. */
const COMPLETE_IN_BASH = `
source "$1"; shift
for line; do
  COMP_LINE=$line COMP_POINT=\${#line} COMPREPLY=()
  # As readline splits words: at = too.
  read -ra COMP_WORDS <<< "\${line//=/ = }"
  [[ $line == *[\\ =] && $line != *= ]] && COMP_WORDS+=('')
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  function=$(complete -p catchword | sed 's/.*-F \\([^ ]*\\).*/\\1/')
  "$function" catchword "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD-1]}"
  echo "\${COMPREPLY[*]}"
done`;

async function inBash(lines: readonly string[]): Promise<string[][]> {
  const args = ['--noprofile', '--norc', '-c', COMPLETE_IN_BASH, 'bash', await script('bash'), ...lines];
  const { stdout, stderr } = await run('bash', args);
  expect(stderr).toBe('');
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' ').filter((word) => word !== ''));
}

it('completion in bash offers every command and every option that the help lists', { tags: ['slow'] }, async () => {
  const commands = documented();
  expect(commands.length).toBeGreaterThan(VERBS.length);
  const [verbs, ...offered] = await inBash([
    'catchword ',
    ...commands.map(({ path }) => `catchword ${path} `),
    ...commands.map(({ path }) => `catchword ${path} --`),
  ]);
  expect(verbs?.sort()).toEqual(VERBS.map(({ name }) => name).sort());
  commands.forEach(({ path, words, options }, index) => {
    expect(offered[index], path).toEqual(expect.arrayContaining(words));
    const flags = offered[commands.length + index]?.filter((flag) => flag !== '--help');
    expect(flags?.sort(), path).toEqual(options.sort());
  });
});

it('completion in bash offers the values of a closed list, also after =, and leaves other values to the names of files', async () => {
  const lines = CLOSED.map(([line]) => `catchword ${line}`);
  const offered = await inBash([...lines, 'catchword licenses --type=on', 'catchword sync --from ']);
  expect(offered.map((words) => words.sort())).toEqual([...CLOSED.map(([, values]) => values), ['online'], []]);
  expect(readFileSync(await script('bash'), 'utf8')).toContain('complete -o default');
});

it('completion in bash offers after help, and after an option, what follows without it', async () => {
  expect(await inBash(['catchword help sandb', 'catchword help sink pau', 'catchword sink list --json --j'])).toEqual([
    ['sandbox'],
    ['pause'],
    ['--json'],
  ]);
});

/** An interactive zsh on a terminal, in which Tab is pressed after each line, and then a key that prints the line. */
const COMPLETE_IN_ZSH = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source $1"
zpty -r -m shell out '*ready*'
for line in "\${@:2}"; do
  zpty -w -n shell "$line"$'\\t\\x18'
  zpty -r -m shell out '*<<*>>*'
  print -r -- "\${\${out##*<<}%%>>*}"
done`;

const ZSH_START = (completion: string): string => `
autoload -Uz compinit; compinit -u -D; source ${completion}; unsetopt beep
show() { print -r -- "<<$BUFFER>>"; BUFFER='' }
zle -N show; bindkey '^X' show; PS1=''; print re''ady`;

it.skipIf(isMissing('zsh'))(
  'completion in zsh completes commands, options, values and names of files',
  { tags: ['stores', 'slow'] },
  async () => {
    const completion = await script('zsh');
    const start = `${completion}.start`;
    writeFileSync(start, ZSH_START(completion));
    const lines: Readonly<Record<string, string>> = {
      'catchword li': 'catchword licenses ',
      'catchword sink pau': 'catchword sink pause ',
      'catchword sink list --j': 'catchword sink list --json ',
      'catchword help sandb': 'catchword help sandbox ',
      'catchword licenses --type onl': 'catchword licenses --type online ',
      'catchword licenses --type=onl': 'catchword licenses --type=online ',
      'catchword sandbox --order up': 'catchword sandbox --order updated-',
      'catchword completion z': 'catchword completion zsh ',
      [`catchword asset put A --file ${completion}.st`]: `catchword asset put A --file ${start} `,
    };
    const { stdout } = await run('zsh', ['-f', '-c', COMPLETE_IN_ZSH, 'zsh', start, ...Object.keys(lines)], {
      timeout: 240_000,
    });
    expect(stdout.split('\n').slice(0, -1)).toEqual(Object.values(lines));
  },
);

it.skipIf(isMissing('fish'))(
  'completion in fish completes commands, options and values, with what they mean',
  { tags: ['stores'] },
  async () => {
    const completion = await script('fish');
    const lines = ['li', 'sink pau', 'sink list --j', 'help sandb', ...CLOSED.map(([line]) => line)];
    const source = `source $argv[1]; for line in $argv[2..]; complete -C "catchword $line"; echo; end`;
    const home = { PATH: process.env.PATH, HOME: temporaryDirectory() };
    const { stdout, stderr } = await run('fish', ['--no-config', '-c', source, completion, ...lines], { env: home });
    expect(stderr).toBe('');
    const offered = stdout
      .trimEnd()
      .split('\n\n')
      .map((block) => block.split('\n'));
    expect(offered.map((block) => block.map((line) => line.split('\t')[0]))).toEqual([
      ['licenses'],
      ['pause'],
      ['--json'],
      ['sandbox'],
      ...CLOSED.map(([, values]) => [...values]),
    ]);
    expect(offered[0]).toEqual(['licenses\tlist the licenses of the user of the access token']);
  },
);
