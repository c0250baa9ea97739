/**
 * Measures how long a change takes from its commit to an idle sink of the same process.
 * `npx tsx bench/latency.ts [changes]`; takes half a minute for each sink.
 */

import { once } from 'node:events';
import { statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { systemClock } from '@catchword/base/clock';
import { createLog } from '@catchword/base/log';
import { openHarness, SINK_NAME } from '../src/contract/harness.ts';
import { sinkConfig } from '../src/relay/sink-config.ts';
import { table } from '../src/report/text.ts';
import { inDirectory, print } from './process.ts';

const changes = Number(process.argv[2] ?? 500);

/** @param arrived how much the store has */
async function measure(url: string, arrived: () => number): Promise<readonly number[]> {
  const harness = openHarness();
  try {
    const config = sinkConfig({ env: 'CATCHWORD_SINK_CONTRACT', name: SINK_NAME, url, secret: undefined });
    harness.start(config, { clock: systemClock, log: createLog('warn') });
    const took: number[] = [];
    for (let version = 0; version <= changes; version++) {
      // Not in step with the relay's polls.
      await delay(30 + 40 * Math.random());
      const before = arrived();
      harness.change([{ vbid: 'A', body: JSON.stringify({ vbid: 'A', version }) }]);
      const committed = performance.now();
      while (arrived() === before) await turn();
      took.push(performance.now() - committed);
    }
    // The first one waits for the connection.
    return took.slice(1).sort((a, b) => a - b);
  } finally {
    await harness.close();
  }
}

function row(name: string, took: readonly number[]): string[] {
  const at = (share: number): string => (took[Math.ceil(share * took.length) - 1] ?? 0).toFixed(2);
  return [name, at(0.5), at(0.99), at(1)];
}

let requests = 0;
const receiver = createServer((request, response) => {
  requests++;
  request.resume().on('end', () => response.end());
}).listen(0, '127.0.0.1');
await once(receiver, 'listening');
const { port } = receiver.address() as AddressInfo;
const rows = [row('webhook', await measure(`webhook+http://127.0.0.1:${port}/#allow=private`, () => requests))];
receiver.close();
await inDirectory(async (directory) => {
  const file = join(directory, 'changes.jsonl');
  const size = (): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  rows.push(row('jsonl', await measure(`jsonl:${file}`, size)));
});
print(table(['sink', 'p50 ms', 'p99 ms', 'most ms'], rows));
