import { onTestFinished } from 'vitest';
import type { SinkTarget } from '../../src/relay/contract/checks.ts';
import { openWorkbench, SINK_NAME, type Version, type Workbench } from '../../src/relay/contract/workbench.ts';
import { type SinkConfig, sinkConfig } from '../../src/relay/settings.ts';

/** A mirror of the test's own and the settings of a sink; all is removed when the test ends. */
export async function feeding<T extends SinkTarget>(
  prepared: Promise<T>,
): Promise<{ bench: Workbench; target: T; config: SinkConfig }> {
  const target = await prepared;
  const bench = openWorkbench();
  onTestFinished(async () => {
    await bench.close();
    await target.remove();
  });
  const config = sinkConfig({ env: 'SINK', name: SINK_NAME, url: target.url, secret: target.secret });
  return { bench, target, config };
}

export function books(count: number, version: number): Version[] {
  return Array.from({ length: count }, (_, index) => {
    const vbid = `P${index}`;
    return { vbid, body: JSON.stringify({ vbid, version }) };
  });
}
