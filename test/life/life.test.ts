import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { beginLife, type Life } from './life.ts';
import { toolsAvailable } from './tools.ts';

describe.skipIf(!toolsAvailable).sequential('the life of an installation', () => {
  let life: Life;
  beforeAll(async () => {
    life = await beginLife();
  }, 120_000);
  afterAll(async () => {
    await life.end();
    life.project.remove();
  });
  afterEach(({ task }) => {
    if (task.result?.state === 'fail') process.stderr.write(`\n"${task.name}" failed.\n${life.evidence()}\n`);
  });

  it('installs from the packed tarball, and the demo finds every product the same', async () => {
    const { code, stdout, stderr } = await life.catchword('demo');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/compared one by one: all [\d,]+ products of the service are here, each the same/);
  });

  it('fills the mirror and both shops as soon as pm2 has started the daemon', async () => {
    await life.source.busy();
    await life.pm2.start();
    await life.up();
    await life.allEqual();
    expect(await life.sinkStates()).toEqual({ shop: 'live', hook: 'live' });
    expect(life.takeFailures()).toEqual([]);
    await life.source.busy();
  });

  it('is read by sqlite3 and Python, and goes on writing into the files that they see', async () => {
    await life.up();
    for (let round = 0; round < 3; round++) {
      const before = life.lastSeq();
      await life.source.mutate({ update: 5 });
      await life.readers.saw(before + 1);
    }
    expect(life.readers.takeProblems()).toEqual([]);
    await life.allEqual();
  });
});
