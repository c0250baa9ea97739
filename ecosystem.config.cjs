// For pm2: `pm2 start ecosystem.config.cjs`. Without REDIS_URL one process does everything; with it, each role is a
// process of its own, and fetchers can run on other machines as well (`--only fetcher`).
const script = require('node:path').join(__dirname, 'dist', 'cli.js');

const role = (name, instances = 1) => ({
  name,
  script,
  args: name,
  exec_mode: 'fork',
  instances,
  // A role says when it is ready, and finishes the page in hand before it ends.
  wait_ready: true,
  listen_timeout: 30_000,
  kill_timeout: 30_000,
  // Exit code 2 is a wrong setting: starting again would not mend it.
  stop_exit_codes: [0, 2],
  exp_backoff_restart_delay: 1_000,
});

module.exports = {
  apps: process.env.REDIS_URL
    ? [role('keeper'), role('scheduler'), role('fetcher', 2), role('relay'), role('web')]
    : [role('daemon')],
};
