import { once } from 'node:events';
import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { changesCommand } from '../../src/cli/commands/changes-command.ts';
import { contextWith } from '../support/in-process.ts';
import { filled } from '../support/place.ts';

it('changes --follow stops on a signal even if stdout is blocked', async () => {
  const { settings: environment } = await filled({ items: 300 });
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
