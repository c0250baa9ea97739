import { createServer } from 'node:net';
import { join } from 'node:path';
import { serveUntil, startTogether } from '@catchword/base/lifecycle';
import { createLog } from '@catchword/base/log';
import { introduction } from '@catchword/sandbox/introduction';
import { SANDBOX_DEFAULTS } from '@catchword/sandbox/options';
import { startSandbox } from '@catchword/sandbox/sandbox-server';
import { plural } from '../../../report/text.ts';
import { startDaemon } from '../../roles/roles.ts';
import { checkedSettings } from '../shared/checked-settings.ts';
import type { CommandContext } from '../shared/command-context.ts';
import { colours, printLine } from '../shared/output-format.ts';
import { logSettings } from '../shared/person-notices.ts';

/** Pages are small and slow, so that the first load takes long enough to be watched, and its picture has many windows. */
const PER_PAGE = 75;
const REQUESTS_PER_SECOND = 12;
const LATENCY_MS = 150;
const CHANGES_PER_SECOND = 2;
const DELTA_SECONDS = 20;
const FULL_MINUTES = 10;
/** The default of CATCHWORD_HTTP_PORT; if it is in use, the next free port of this many. */
const PORT = { first: 8080, tries: 20 };

const STAY_ITEMS = 30_000;

/** @returns the port if nothing listens on it on 127.0.0.1, otherwise null; for 0, any free port */
async function freePort(port: number): Promise<number | null> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : null));
    });
  });
}

/** Chooses the port of the page. A port that the user asked for is returned as it is: the daemon says if it cannot be used. */
async function choosePort(asked: number | undefined): Promise<number> {
  if (asked) return asked;
  const preferred = asked === undefined ? Array.from({ length: PORT.tries }, (_, at) => PORT.first + at) : [];
  for (const port of [...preferred, 0]) {
    const free = await freePort(port);
    if (free !== null) return free;
  }
  return PORT.first;
}

interface StayOptions {
  /** Empty; for the mirror and the file of the sink. */
  readonly directory: string;
  /** 0: any free one; undefined: 8080, or the next free one. */
  readonly port: number | undefined;
  readonly items?: number;
  /** Default: 2. */
  readonly changesPerSecond?: number;
}

function guide(context: CommandContext, address: string, items: number, directory: string): string {
  const c = colours(context);
  return [
    `A service with ${plural(items, 'product')} and a daemon that copies it run on this machine.`,
    '',
    `Open ${c.bold(`${address}/`)}`,
    '',
    '  Overview  the first load: open it now, and watch its windows join until it is sealed, in less than a minute',
    `  Runs      after it, what changed is read every ${DELTA_SECONDS} seconds, and everything every ${FULL_MINUTES} minutes`,
    '  Products  search for a word such as history, and open a product',
    `  Changes   the service changes ${plural(CHANGES_PER_SECOND, 'product')} a second; each change is recorded once`,
    '  Sinks     a file receives every change; pause it, and resume it',
    '',
    `The mirror is ${join(directory, 'catalog.db')}; any SQLite tool can read it.`,
    'Press Ctrl-C to end the demo and remove its files.',
  ].join('\n');
}

/** Serves the page of a daemon that mirrors a sandbox, until the context's signal aborts. */
export async function stay(context: CommandContext, { directory, port, ...options }: StayOptions) {
  const { items = STAY_ITEMS, changesPerSecond = CHANGES_PER_SECOND } = options;
  const { clock } = context;
  const services = await startTogether(async (started) => {
    const pace = { latencyMs: LATENCY_MS, churnPerSecond: changesPerSecond };
    const sandbox = await startSandbox({ items, details: true, ...pace, clock });
    started.push({ name: 'sandbox', stop: () => sandbox.stop() });
    const free = await choosePort(port);
    const settings = {
      ...introduction(sandbox, SANDBOX_DEFAULTS).environment,
      CATCHWORD_DB: join(directory, 'catalog.db'),
      CATCHWORD_PER_PAGE: `${PER_PAGE}`,
      CATCHWORD_RATE_LIMIT: `${REQUESTS_PER_SECOND}/s`,
      CATCHWORD_DELTA_OVERLAP: '2s',
      CATCHWORD_DELTA_CRON: `*/${DELTA_SECONDS} * * * * *`,
      CATCHWORD_FULL_CRON: `*/${FULL_MINUTES} * * * *`,
      CATCHWORD_SINK_FILE: `jsonl:${join(directory, 'changes.jsonl')}`,
      CATCHWORD_HTTP_PORT: `${free}`,
    };
    const config = checkedSettings(settings, 'source');
    const logging = logSettings(context, 'warn');
    const apart = context.apart === true ? logging : undefined;
    await startDaemon({ config, clock, log: createLog('warn', logging), apart }, started);
    printLine(context, guide(context, `http://127.0.0.1:${free}`, items, directory));
    return started;
  });
  await serveUntil(context.signal, services);
}
