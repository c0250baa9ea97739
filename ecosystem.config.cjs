// Configuration for pm2: run `pm2 start ecosystem.config.cjs` in the directory with `.env`. Without REDIS_URL one
// process
// has all roles; with it, each role is a process, and more fetchers can run on other machines (`--only
// catchword-fetcher`).
// See docs/pm2.md.
const { existsSync, readFileSync } = require('node:fs');
const { join } = require('node:path');
const { parseEnv } = require('node:util');

const directory = process.cwd();
const file = join(directory, '.env');
// As in the program: the environment takes precedence over `.env`.
const settings = { ...(existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {}), ...process.env };

const name = settings.CATCHWORD_NAME || '';
if (!/^[A-Za-z0-9_-]*$/.test(name)) throw new Error('CATCHWORD_NAME may contain only letters, digits, _ and -');
const prefix = name === '' ? 'catchword' : `catchword-${name}`;

const role = (verb, instances = 1) => ({
  name: `${prefix}-${verb}`,
  script: join(__dirname, 'dist', 'cli.js'),
  args: verb,
  cwd: directory,
  exec_mode: 'fork',
  instances,
  // pm2 keeps one file for each stream, so its error log contains only errors.
  env: { LOG_OUTPUT: settings.LOG_OUTPUT || 'split' },
  // A role reports when it is ready, and finishes the current page before it ends.
  wait_ready: true,
  listen_timeout: 30_000,
  kill_timeout: 30_000,
  // Exit code 2 is an invalid setting, which a restart does not fix. pm2 counts an end by a signal as 0.
  stop_exit_codes: [2],
  exp_backoff_restart_delay: 1_000,
});

// The relay exits with an error if no sink is configured.
const isSink = (key) => /^CATCHWORD_SINK_.+(?<!_SECRET|_SECRET_FILE)$/.test(key);
const hasSinks = Object.keys(settings).some((key) => isSink(key) && settings[key] !== '');
const relays = hasSinks ? [role('relay')] : [];

module.exports = {
  apps:
    settings.REDIS_URL || settings.REDIS_URL_FILE
      ? [role('keeper'), role('scheduler'), role('fetcher', 2), ...relays, role('web')]
      : [role('daemon')],
};
