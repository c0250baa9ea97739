// Stands in for npx in the commands of the documents: a service runs until it does its work, and is then stopped.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const SERVICES = ['daemon', 'keeper', 'fetcher', 'scheduler', 'relay', 'web', 'sandbox'];

const [program = '', ...args] = process.argv.slice(2);
if (program !== 'catchword') throw new Error(`npx ${program}: only catchword is installed`);
const cli = join(process.cwd(), 'node_modules/.bin/catchword');
const [verb = ''] = args;

const require = createRequire(cli);
const db = process.env.CATCHWORD_DB ?? 'data/catalog.db';

/** Whether a sink is certainly not filled, which takes less time than to ask the program. */
function isAnyBehind() {
  if (!existsSync(db)) return false;
  const mirror = new (require('better-sqlite3'))(db, { readonly: true });
  try {
    const behind = `SELECT 1 FROM sinks WHERE configured AND state = 'running'
      AND (retry_at IS NOT NULL OR cursor < legs ->> '$[#-1].to' OR cursor < (SELECT max(seq) FROM changes))`;
    return mirror.prepare(behind).get() !== undefined;
  } finally {
    mirror.close();
  }
}

/** Whether every sink has every change. */
function areSinksFilled() {
  if (isAnyBehind()) return false;
  const { stdout } = spawnSync(process.execPath, [cli, 'sink', 'list', '--json'], { encoding: 'utf8' });
  return JSON.parse(stdout).every(
    ({ state, lag_records: lag }) => ['not configured', 'held'].includes(state) || (state === 'live' && lag === 0),
  );
}

async function runService() {
  // The port that a service has by default may be taken.
  const port = verb === 'sandbox' ? ['--port', '0'] : [];
  const child = spawn(process.execPath, [cli, ...args, ...port], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => void child.once('close', resolve));
  let output = '';
  const works = new Promise((resolve) => {
    for (const [stream, own] of [
      [child.stdout, process.stdout],
      [child.stderr, process.stderr],
    ]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
        own.write(text);
        if (/"msg":"(started|listening)"|http:\/\/127\.0\.0\.1:\d+/.test(output)) resolve(undefined);
      });
    }
  });
  await Promise.race([works, ended]);
  while (['daemon', 'relay'].includes(verb) && child.exitCode === null && !areSinksFilled()) await delay(200);
  child.kill('SIGTERM');
  const code = await ended;
  // Without an own end, a service exits as its signal says.
  process.exitCode = code === 143 ? 0 : code;
}

if (SERVICES.includes(verb) || args.some((word) => word === '--follow' || word === '--stay')) await runService();
else process.exitCode = spawnSync(process.execPath, [cli, ...args], { stdio: 'inherit' }).status ?? 1;
