import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { OPTIONS } from '../src/config.ts';
import { FAULT_KINDS } from '../src/sandbox/http/faults.ts';
import { runHere } from './support/in-process.ts';
import { temporaryDirectory } from './support/mirror.ts';

const README = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

describe('the README', () => {
  it('names every command, and every command has help', async () => {
    const { stdout, code } = await runHere(['--help'], {}, temporaryDirectory());
    expect(code).toBe(0);
    const verbs = [...stdout.matchAll(/^ {2}([a-z]+)(?: \[options\])?(?: .*)?$/gm)]
      .map((match) => match[1] ?? '')
      .filter((verb) => verb !== 'help');
    expect(verbs).toContain('sync');
    expect(verbs.length).toBeGreaterThan(12);
    for (const verb of verbs) {
      expect(README).toContain(`catchword ${verb}`);
      const help = await runHere([verb, '--help'], {}, temporaryDirectory());
      expect(help).toMatchObject({ code: 0, stderr: '' });
      expect(help.stdout).toContain(`Usage: catchword ${verb}`);
    }
  });

  it('has a row for every setting, with its default', () => {
    for (const { env, fallback, secret } of Object.values(OPTIONS)) {
      const name = secret ? `\`${env}\`, \`${env}_FILE\`` : `\`${env}\``;
      expect(README).toContain(`| ${name} | ${fallback ? `\`${fallback}\`` : '(none)'} |`);
    }
  });

  it('names every fault of the sandbox', () => {
    for (const kind of FAULT_KINDS) expect(README).toContain(`\`${kind}\``);
  });
});
