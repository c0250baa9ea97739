import { VERSION } from '@catchword/base/version';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { VERBS } from '../../src/cli/verb-table.ts';
import { runHere } from '../support/in-process.ts';

const catchword = (...args: string[]) => runHere(args, {}, temporaryDirectory());

it.each([[[]], [['sink']], [['credentials']], [['asset']], [['package']], [['user']]])(
  'an incomplete command prints its help on stderr and exits with 2: %j',
  async (args: string[]) => {
    const ended = await catchword(...args);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toContain(`Usage: ${['catchword', ...args].join(' ')} [options] [command]`);
    expect(ended.stderr).not.toMatch(/outputHelp|^error/m);
  },
);

it.each([
  [['help'], 'Usage: catchword [options] [command]'],
  [['--help'], 'Usage: catchword [options] [command]'],
  [['help', 'sync'], 'Usage: catchword sync [options]'],
  [['help', 'sink'], 'Usage: catchword sink [options] [command]'],
  [['help', 'sink', 'list'], 'Usage: catchword sink list [options]'],
  [['sink', 'help', 'list'], 'Usage: catchword sink list [options]'],
])('help is printed on stdout with exit code 0: %j', async (args, usage) => {
  expect(await catchword(...args)).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(usage) });
});

it.each([
  [['help', 'snyc'], 'unknown command "snyc" [USAGE]\nhint  Did you mean sync?'],
  [['help', 'sink', 'lst'], 'unknown command "lst" [USAGE]\nhint  Did you mean list?'],
  [['sink', 'lst'], "unknown command 'lst' (Did you mean list?) [USAGE]\nhint  See: npx catchword sink --help."],
  [['sync', '--fool'], '[USAGE]\nhint  See: npx catchword sync --help.'],
])('help suggests the command that was probably meant: %j', async (args, message) => {
  expect(await catchword(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) });
});

it('help describes every command in one line in lower case', async () => {
  const { stdout } = await catchword('--help');
  for (const { name, summary } of VERBS) {
    expect(summary, name).toMatch(/^[a-z].*[^.]$/);
    expect(stdout).toMatch(new RegExp(`^  ${name} +${summary.replace(/[()*]/g, '\\$&')}$`, 'm'));
  }
});

it.each(VERBS.map(({ name }) => name))('help explains %s', async (name) => {
  const help = await catchword(name, '--help');
  expect(help).toMatchObject({ code: 0, stderr: '' });
  expect(help.stdout).toContain(`Usage: catchword ${name}`);
});

it('--version prints the version', async () => {
  expect(await catchword('--version')).toMatchObject({ code: 0, stderr: '', stdout: `${VERSION}\n` });
});
