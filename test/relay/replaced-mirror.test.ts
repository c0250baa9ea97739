import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { startSandbox } from '@catchword/sandbox/sandbox-server';
import { listen } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { startService } from '../support/cli.ts';
import { load } from '../support/load.ts';
import { settingsFor } from '../support/mirror.ts';

it('ends when its mirror is replaced, even if a sink leaves a connection open', { tags: ['slow'] }, async () => {
  const sandbox = await startSandbox({ items: 10 });
  onTestFinished(() => sandbox.stop());
  const silent = createServer(() => {});
  const port = await listen(silent);
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  const settings = settingsFor(sandbox.url, db);
  await load(settings, 'full');
  const sink = join(directory, 'sink.mjs');
  writeFileSync(
    sink,
    `import { connect } from 'node:net';
export const createSink = () => ({
      batch: { events: 10, chars: 1e6 },
      check: async () => '',
      open: async () => void connect(${port}, '127.0.0.1') ?? null,
      deliver: async () => {},
      close: async () => {},
    });`,
  );
  const relay = startService(
    ['relay'],
    { ...settings, LOG_LEVEL: 'info', CATCHWORD_SINK_X: `module:${sink}` },
    directory,
  );
  await Promise.all([once(silent, 'connection'), relay.shows('started')]);
  renameSync(db, `${db}.moved`);
  expect(await relay.ended).toMatchObject({
    code: 1,
    signal: null,
    stderr: expect.stringContaining('MIRROR_REPLACED'),
  });
});
