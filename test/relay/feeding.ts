import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { SinkTarget } from '../../src/relay/contract/checks.ts';
import { openWorkbench, SINK_NAME, type Version, type Workbench } from '../../src/relay/contract/harness.ts';
import { type SinkConfig, sinkConfig } from '../../src/relay/sink-config.ts';

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

/** The same, with a sink that has been sent `count` products. */
export async function fed<T extends SinkTarget>(prepared: Promise<T>, count: number): ReturnType<typeof feeding<T>> {
  const scene = await feeding(prepared);
  scene.bench.start(scene.config);
  scene.bench.change(books(count, 1));
  await scene.bench.caughtUp();
  return scene;
}

export function books(count: number, version: number): Version[] {
  return Array.from({ length: count }, (_, index) => {
    const vbid = `P${index}`;
    return { vbid, body: JSON.stringify({ vbid, version }) };
  });
}

/** Real time, that can be moved on. */
export function movable() {
  let aheadMs = 0;
  return {
    clock: { ...systemClock, now: () => Date.now() + aheadMs, random: () => 0.02 },
    advance: (ms: number) => {
      aheadMs += ms;
    },
  };
}
