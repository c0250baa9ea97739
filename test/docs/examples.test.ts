import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Sandbox, startSandbox } from '@catchword/sandbox/sandbox-server';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { serveEngine } from '../examples/engine.ts';
import { createKafka } from '../examples/fake-kafka.ts';
import { createMeilisearch } from '../examples/fake-meilisearch.ts';
import { createOpenSearch } from '../examples/fake-opensearch.ts';
import { createTypesense } from '../examples/fake-typesense.ts';
import { directoryOfFile } from '../package/fresh-project.ts';
import { installPackage } from '../support/package.ts';

/* Runs the programs of examples as a user would: with the packed package installed, against the sandbox. */

const ROOT = new URL('../../', import.meta.url);
const run = promisify(execFile);

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
  installPackage(project);
  // What the example tells its reader to install.
  symlinkSync(
    fileURLToPath(new URL('node_modules/standardwebhooks', ROOT)),
    join(project, 'node_modules/standardwebhooks'),
  );
  sandbox = await startSandbox({ items: 2_000 });
  environment = {
    PATH: process.env.PATH ?? '',
    HOME: project,
    CATCHWORD_BASE_URL: sandbox.url,
    CATCHWORD_API_KEY: 'SANDBOXKEY',
    CATCHWORD_ACCESS_TOKEN: 'sandboxtoken',
    CATCHWORD_RATE_LIMIT: 'off',
    CATCHWORD_DELTA_OVERLAP: '1s',
  };
  await run('npx', ['catchword', 'sync'], { cwd: project, env: environment });
});

afterAll(() => sandbox.stop());

it('examples/shop-index.mjs builds an index from the mirror, and follows its changes', { tags: ['slow'] }, async () => {
  const examples = join(project, 'node_modules/catchword/examples');
  const index = start(join(examples, 'shop-index.mjs'), 'data/catalog.db');
  const [, count] = /^(\d+) products to sell$/.exec(await index.line()) ?? [];
  sandbox.catalog.mutate({ create: 1, seed: 9 });
  await run('npx', ['catchword', 'sync'], { cwd: project, env: environment });
  expect(await index.line()).toMatch(new RegExp(`^created \\S+: ${Number(count) + 1} products to sell$`));
  expect(await index.stop()).toBe(0);
});

it.each([
  ['opensearch-sink.mjs', createOpenSearch],
  ['meilisearch-sink.mjs', createMeilisearch],
  ['typesense-sink.mjs', createTypesense],
  ['kafka-sink.mjs', createKafka],
])('examples/%s feeds its engine from where a user has copied it to', { tags: ['slow'] }, async (module, create) => {
  const engine = create();
  const { url, remove } = await serveEngine(engine);
  onTestFinished(remove);
  copyFileSync(join(project, 'node_modules/catchword/examples', module), join(project, module));
  const env = {
    ...environment,
    CATCHWORD_SINK_COPIED: url.replace(/^module:[^?]*/, `module:${module}`),
    CATCHWORD_SINK_COPIED_SECRET: engine.secret,
  };
  const relay = spawn(process.execPath, ['node_modules/catchword/dist/cli.js', 'relay'], {
    cwd: project,
    env,
    stdio: 'ignore',
  });
  onTestFinished(() => void relay.kill('SIGKILL'));
  const options = { cwd: project, env, maxBuffer: 2 ** 26 };
  const { stdout } = await run('npx', ['catchword', 'export', '--format', 'ndjson'], options);
  const products = stdout.trim().split('\n');
  expect(products.length).toBeGreaterThan(1_900);
  await expect.poll(() => engine.products().size).toBe(products.length);
  relay.kill('SIGTERM');
  await once(relay, 'exit');
});

it.each(['mjs', 'py'])(
  'examples/receive-webhook.%s receives what a webhook sends',
  { tags: ['slow'] },
  async (language) => {
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
  },
);
