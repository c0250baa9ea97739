import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../src/sandbox/server.ts';
import { installPackage } from '../support/package.ts';

/* Runs the examples of the documents as a user would: with the packed package installed, against the sandbox. */

const ROOT = new URL('../../', import.meta.url);
const TSX = fileURLToPath(new URL('node_modules/.bin/tsx', ROOT));
const run = promisify(execFile);

/** Verbs that run until they are stopped; other tests run them. */
const SERVICES = /npx catchword (daemon|relay|sandbox)\b/;

function blocks(document: string, language: string): string[] {
  const text = readFileSync(new URL(document, ROOT), 'utf8');
  return [...text.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, code = '']) => code);
}

let project: string;
let sandbox: Sandbox;
let environment: Record<string, string>;

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), 'catchword-examples-'));
  await installPackage(project);
  writeFileSync(join(project, 'users.csv'), 'reference\nuser-0000001\nuser-0000002\n');
  sandbox = await startSandbox({ items: 2_000, users: 2 });
  environment = {
    PATH: process.env.PATH ?? '',
    HOME: project,
    CATCHWORD_BASE_URL: sandbox.url,
    CATCHWORD_API_KEY: 'SANDBOXKEY',
    CATCHWORD_ACCESS_TOKEN: 'sandboxtoken',
    CATCHWORD_RATE_LIMIT: 'off',
    CATCHWORD_DELTA_OVERLAP: '1s',
  };
});

afterAll(async () => {
  await sandbox.stop();
  rmSync(project, { recursive: true, force: true });
});

describe('examples of the documents', () => {
  it('run from the command line, in the order in which they are shown', async () => {
    const lines = ['README.md', 'docs/client.md']
      .flatMap((document) => blocks(document, 'sh'))
      .flatMap((code) => code.split('\n'))
      .filter((line) => line.startsWith('npx catchword') && !SERVICES.test(line));
    expect(lines.length).toBeGreaterThan(4);
    for (const line of lines) {
      const result = await run('bash', ['-o', 'pipefail', '-c', line], { cwd: project, env: environment }).then(
        ({ stdout }) => stdout,
        (error: Error & { stderr?: string }) => `failed: ${error.stderr}`,
      );
      expect([line, result]).toEqual([line, expect.not.stringMatching(/^failed/)]);
    }
  });

  it.each(['README.md', 'docs/client.md'])('run as TypeScript: %s', async (document) => {
    const [code = ''] = blocks(document, 'ts').filter((one) => one.includes("from 'catchword'"));
    expect(code).toContain('http://127.0.0.1:4010');
    const file = join(project, 'example.ts');
    writeFileSync(file, code.replace('http://127.0.0.1:4010', sandbox.url));
    const { stderr } = await run(TSX, [file], { cwd: project, env: environment });
    expect(stderr).toBe('');
  });
});
