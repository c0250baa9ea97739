// For pm2: `pm2 start ecosystem.config.cjs`, in the directory that holds `.env`. Without REDIS_URL one process does
// everything; with it, each role is a process of its own, and fetchers can run on other machines as well
// (`--only catchword-fetcher`). docs/operations.md has more.
const { existsSync, readFileSync } = require('node:fs');
const { join } = require('node:path');
const { parseEnv } = require('node:util');

const directory = process.cwd();
const file = join(directory, '.env');
// As the program itself reads its settings: the environment, and under it `.env`.
const settings = { ...(existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {}), ...process.env };

const name = settings.CATCHWORD_NAME || '';
if (!/^[A-Za-z0-9_-]*$/.test(name)) throw new Error('CATCHWORD_NAME: must be letters, digits, _ and -');
const prefix = name === '' ? 'catchword' : `catchword-${name}`;

const role = (verb, instances = 1) => ({
  name: `${prefix}-${verb}`,
  script: join(__dirname, 'dist', 'cli.js'),
  args: verb,
  cwd: directory,
  exec_mode: 'fork',
  instances,
  // pm2 keeps a file for each stream: its error log then holds errors only.
  env: { LOG_OUTPUT: settings.LOG_OUTPUT || 'split' },
  // A role says when it is ready, and finishes the page in hand before it ends.
  wait_ready: true,
  listen_timeout: 30_000,
  kill_timeout: 30_000,
  // Exit code 2 is a wrong setting, which a restart does not put right. pm2 counts the end by a signal as 0.
  stop_exit_codes: [2],
  exp_backoff_restart_delay: 1_000,
});

// relay delivers to sinks, and ends with an error where none is set.
const isSink = (key) => /^CATCHWORD_SINK_.+(?<!_SECRET|_SECRET_FILE)$/.test(key);
const hasSinks = Object.keys(settings).some((key) => isSink(key) && settings[key] !== '');
const relays = hasSinks ? [role('relay')] : [];

module.exports = {
  apps:
    settings.REDIS_URL || settings.REDIS_URL_FILE
      ? [role('keeper'), role('scheduler'), role('fetcher', 2), ...relays, role('web')]
      : [role('daemon')],
};
