import type { ExitCode } from '@catchword/base/errors';
import type { Command } from 'commander';
import type { CommandContext } from './commands/shared/command-context.ts';

/** Imports the module that makes the command, among others maybe. */
type Load = () => Promise<(context: CommandContext) => Command | readonly Command[]>;

/** `exits`: exit codes besides 0, 1, 2 and the codes of signals. */
type Row = readonly [name: string, summary: string, load: Load, exits?: readonly ExitCode[]];

const syncs = async () => (await import('./commands/sync-command.ts')).syncCommands;
const verify = async () => (await import('./commands/verify-command.ts')).verifyCommand;
const status = async () => (await import('./commands/status-command.ts')).statusCommand;
const changes = async () => (await import('./commands/changes-command.ts')).changesCommand;
const exports = async () => (await import('./commands/export/export-command.ts')).exportCommand;
const sink = async () => (await import('./commands/sink-command.ts')).sinkCommand;
const notify = async () => (await import('./commands/notify-command.ts')).notifyCommand;
const catalog = async () => (await import('./commands/catalog-command.ts')).catalogCommand;
const assets = async () => (await import('./commands/asset-command.ts')).assetCommands;
const packages = async () => (await import('./commands/package-command.ts')).packageCommand;
const licenses = async () => (await import('./commands/licenses-command.ts')).licensesCommand;
const credentials = async () => (await import('./commands/credentials/verify-credentials.ts')).credentialsCommand;
const user = async () => (await import('./commands/user-command.ts')).userCommand;
const doctor = async () => (await import('./commands/doctor/doctor-command.ts')).doctorCommand;
const backups = async () => (await import('./commands/backup-command.ts')).backupCommands;
const settings = async () => (await import('./commands/settings-command.ts')).settingsCommand;
const sandbox = async () => (await import('./commands/sandbox-command.ts')).sandboxCommand;
const demo = async () => (await import('./commands/demo/demo-command.ts')).demoCommand;
const completion = async () => (await import('./commands/completion/completion-command.ts')).completionCommand;
const help = async () => (await import('./commands/help-command.ts')).helpCommand;
const daemons = async () => (await import('./commands/daemon-command.ts')).daemonCommands;
const runs = async () => (await import('./commands/runs-command.ts')).runCommands;
const decisions = async () => (await import('./commands/decisions-command.ts')).decisionsCommand;
const products = async () => (await import('./commands/product-command.ts')).productCommands;

/** Verbs, by their heading in the help. */
const GROUPS: Readonly<Record<string, readonly Row[]>> = {
  Load: [
    ['sync', 'read what changed since the last run; at first, everything', syncs, [4, 5, 75]],
    ['daemon', 'run everything in one process until it is stopped', daemons],
    ['verify', 'compare the mirror with the source; change no product', verify, [3, 75]],
    ['approve', 'apply removals that a run held (products seen since are kept)', runs, [4, 75]],
    ['reject', 'drop removals that a run held', runs, [4]],
    ['cancel', 'cancel a run (applied pages are kept)', runs],
    ['adopt', 'continue the mirror with a service that moved; do a full run', syncs, [4, 5, 75]],
  ],
  Read: [
    ['status', 'show mirror size, freshness, last run, daemon and sinks', status],
    ['runs', 'list the newest runs; check or undo the removals of one', runs, [4, 75]],
    ['run', 'show one run: what it read, changed, proved and rejected', runs],
    ['decisions', 'list who decided what about runs and sinks, and what came of it', decisions],
    ['product', 'show one product, its changes, or an earlier version of it', products],
    ['search', 'search products by words and identifiers; word* for prefixes', products],
    ['changes', 'print the change log as CloudEvents, one per line', changes],
    ['export', 'write the products, as of one change, as NDJSON, CSV or Parquet', exports],
  ],
  Deliver: [
    ['sink', 'manage the sinks that receive the change log', sink, [3, 5]],
    ['notify', 'try the channels that are notified when something is wrong', notify],
  ],
  'Use the service': [
    ['catalog', 'print the catalog of the service, without a mirror', catalog, [75]],
    ['asset', 'create, change and read assets', assets, [75]],
    ['book', 'create, change and read books', assets, [75]],
    ['package', 'create, change, read and delete packages of books', packages, [75]],
    ['licenses', 'list the licenses of the user of the access token', licenses, [75]],
    ['credentials', 'verify users that this API key created', credentials, [3, 75]],
    ['user', 'create and read users, reset access tokens', user, [75]],
  ],
  'Run roles on several machines': [
    ['scheduler', 'start runs when they are due (needs REDIS_URL)', daemons],
    ['keeper', 'own the mirror and write it (needs REDIS_URL)', daemons],
    ['fetcher', 'read pages; run any number, anywhere (needs REDIS_URL)', daemons],
    ['relay', "deliver changes to the sinks; run it on the mirror's machine", daemons],
    ['web', "serve the mirror over HTTP, read-only, on the mirror's machine", daemons],
  ],
  'Back up': [
    ['backup', 'write a checked copy of the mirror while catchword runs', backups],
    ['restore', 'replace the mirror by a backup; sinks are filled again', backups],
  ],
  'Set up': [
    ['doctor', 'check settings, mirror, Redis, sinks and source; suggest fixes', doctor],
    ['settings', 'print every setting and where it comes from; mask secrets', settings],
    ['sandbox', 'run a stand-in for the service on this machine', sandbox],
    ['demo', 'try catchword: a sandbox, a full load, changes, a delta load', demo, [3]],
    ['completion', 'print a completion script for bash, zsh or fish', completion],
    ['help', 'show help for a command', help],
  ],
};

/** All verbs. Their modules are loaded when they are called. */
export const VERBS = Object.entries(GROUPS).flatMap(([group, rows]) =>
  rows.map(([name, summary, load, exits = []]) => ({ group, name, summary, load, exits })),
);

export type Verb = (typeof VERBS)[number];
