import { once } from 'node:events';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { expect, it, onTestFinished } from 'vitest';
import { changesCommand } from '../../src/cli/commands/changes-command.ts';
import { startSandbox } from '../../src/sandbox/sandbox-server.ts';
import { contextWith } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { settingsFor, temporaryDirectory } from '../support/mirror.ts';

it('changes --follow stops on a signal even if stdout is blocked', async () => {
  const sandbox = await startSandbox({ items: 300 });
  onTestFinished(() => sandbox.stop());
  const environment = settingsFor(sandbox.url, join(temporaryDirectory(), 'catalog.db'));
  await load(environment, 'full');
  const stopping = new AbortController();
  let written = 0;
  // Takes one line, and never drains.
  const stdout = new Writable({
    highWaterMark: 1,
    write: () => {
      written++;
      stdout.emit('taken');
    },
  });
  const context = contextWith({ stdout, stderr: stdout, environment, signal: stopping.signal });
  const ended = changesCommand(context).parseAsync(['--follow'], { from: 'user' });
  if (written === 0) await once(stdout, 'taken');
  expect(stdout.writableNeedDrain).toBe(true);
  stopping.abort();
  await ended;
  expect(written).toBe(1);
  expect(stdout.writableLength).toBeLessThan(2_000);
});
