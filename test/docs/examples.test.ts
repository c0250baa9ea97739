import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox-server.ts';
import { directoryOfFile } from '../package/fresh-project.ts';
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

const project = directoryOfFile('examples');
let sandbox: Sandbox;
let environment: Record<string, string>;

/** Starts a program of Node.js, or of Python, whose output is read line by line. */
function start(file: string, ...args: string[]) {
  const program = file.endsWith('.py') ? 'python3' : process.execPath;
  const child = spawn(program, [file, ...args], {
    cwd: project,
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    line: async (): Promise<string> => {
      const { value, done } = await lines.next();
      if (done) throw new Error('the program ended');
      return value;
    },
    /** @returns its exit code */
    stop: async (): Promise<unknown> => {
      child.kill('SIGTERM');
      const [code] = (await ended) as [number | null];
      return code;
    },
  };
}

beforeAll(async () => {
  await installPackage(project);
  // What the example tells its reader to install.
  symlinkSync(
    fileURLToPath(new URL('node_modules/standardwebhooks', ROOT)),
    join(project, 'node_modules/standardwebhooks'),
  );
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

afterAll(() => sandbox.stop());

it('examples of the documents run from the command line, in the order in which they are shown', async () => {
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

it('examples of the documents run on the mirror, and on its events, as TypeScript and as programs', async () => {
  const code = blocks('docs/node.md', 'ts');
  expect(code).toHaveLength(2);
  for (const [nth, text] of code.entries()) {
    writeFileSync(join(project, `node-${nth}.ts`), text);
    const { stdout, stderr } = await run(TSX, [`node-${nth}.ts`], { cwd: project, env: environment });
    expect(stderr).toBe('');
    expect(stdout).toMatch(nth === 0 ? /^\d{4} products, complete at \d{4}-[\s\S]*\n1000\n/ : /EVENT_INVALID\n$/);
  }
  const examples = join(project, 'node_modules/catchword/examples');
  const index = start(join(examples, 'shop-index.mjs'), 'data/catalog.db');
  const [, count] = /^(\d+) products to sell$/.exec(await index.line()) ?? [];
  sandbox.catalog.mutate({ create: 1, seed: 9 });
  await run('npx', ['catchword', 'sync'], { cwd: project, env: environment });
  expect(await index.line()).toMatch(new RegExp(`^created \\S+: ${Number(count) + 1} products to sell$`));
  expect(await index.stop()).toBe(0);
});

it.each(['mjs', 'py'])('examples of the documents receive what a webhook sends: %s', async (language) => {
  const secret = `whsec_${Buffer.from('a secret of thirty-two characters').toString('base64')}`;
  environment.WEBHOOK_SECRET = secret;
  environment.PORT = '0';
  const receiver = start(join(project, `node_modules/catchword/examples/receive-webhook.${language}`));
  const [, port] = /listening on (\d+)/.exec(await receiver.line()) ?? [];
  const url = `http://127.0.0.1:${port}/`;
  const other = `whsec_${Buffer.from('another secret of the same length').toString('base64')}`;
  const post = async (body: string, keys = [secret], at = new Date()): Promise<number> => {
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': keys.map((key) => new Webhook(key).sign('msg_1', at, body)).join(' '),
    };
    return (await fetch(url, { method: 'POST', headers, body })).status;
  };
  const { stdout } = await run('npx', ['catchword', 'changes', '--limit', '3'], { cwd: project, env: environment });
  expect(await post(`[${stdout.trim().split('\n').join(',')}]`)).toBe(204);
  expect(await receiver.line()).toMatch(/^\d+: sell /);
  expect(await post('[{}]')).toBe(400);
  expect(await post('[]', [other])).toBe(401);
  expect(await post('[]', [])).toBe(401);
  expect(await post('[]', [other, secret])).toBe(204);
  expect(await post('[]', [secret], new Date(Date.now() - 600_000))).toBe(401);
  expect(await receiver.stop()).toBe(0);
});

it.each(['README.md', 'docs/client.md'])('examples of the documents run as TypeScript: %s', async (document) => {
  const examples = blocks(document, 'ts').filter((one) => one.includes("from 'catchword'"));
  expect(examples).not.toEqual([]);
  for (const code of examples) {
    expect(code).toContain('http://127.0.0.1:4010');
    const file = join(project, 'example.ts');
    writeFileSync(file, code.replace('http://127.0.0.1:4010', sandbox.url));
    const { stderr } = await run(TSX, [file], { cwd: project, env: environment });
    expect(stderr).toBe('');
  }
});
