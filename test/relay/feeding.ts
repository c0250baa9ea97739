import { onTestFinished } from 'vitest';
import type { SinkTarget } from '../../src/relay/contract/checks.ts';
import { type Harness, hastyClock, openHarness, SINK_NAME, type Version } from '../../src/relay/contract/harness.ts';
import { type SinkConfig, sinkConfig } from '../../src/relay/sink-config.ts';

/** Prepares a temporary mirror and the configuration of a sink; both are removed at the end of the test. */
export async function feeding<T extends SinkTarget>(
  prepared: Promise<T>,
): Promise<{ harness: Harness; target: T; config: SinkConfig }> {
  const target = await prepared;
  const harness = openHarness();
  onTestFinished(async () => {
    await harness.close();
    await target.remove();
  });
  const config = sinkConfig({ env: 'SINK', name: SINK_NAME, url: target.url, secret: target.secret });
  return { harness, target, config };
}

/** The same, with a sink that has got `count` products. */
export async function fed<T extends SinkTarget>(prepared: Promise<T>, count: number): ReturnType<typeof feeding<T>> {
  const scene = await feeding(prepared);
  scene.harness.start(scene.config);
  scene.harness.change(books(count, 1));
  await scene.harness.caughtUp();
  return scene;
}

/** The same, and its relay has stopped. */
export async function paused<T extends SinkTarget>(prepared: Promise<T>, count: number): ReturnType<typeof feeding<T>> {
  const scene = await fed(prepared, count);
  await scene.harness.stop();
  return scene;
}

export function books(count: number, version: number): Version[] {
  return Array.from({ length: count }, (_, index) => {
    const vbid = `P${index}`;
    return { vbid, body: JSON.stringify({ vbid, version }) };
  });
}

/** Real time that can be advanced. */
export function movable() {
  let aheadMs = 0;
  return {
    clock: { ...hastyClock, now: () => Date.now() + aheadMs },
    advance: (ms: number) => {
      aheadMs += ms;
    },
  };
}
