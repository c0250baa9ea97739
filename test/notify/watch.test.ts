import { expect, it } from 'vitest';
import { CHECK_MS } from '../../src/operate/incidents/incident-tracker.ts';
import { MINUTE, mirrorScene } from './scene.ts';

const HOUR = 60 * MINUTE;

function topics({ store }: ReturnType<typeof mirrorScene>): string[] {
  return store.episodes.open().map(({ topic }) => topic);
}

it('begins an episode when a problem has lasted for a minute, and ends it 5 minutes after it is gone', async () => {
  const scene = mirrorScene();
  const { clock, store } = scene;
  scene.start([]);
  await clock.pass(MINUTE);
  expect(topics(scene)).toEqual([]);
  scene.sink('shop', 'stopped', 'the receiver answered 410');
  await clock.pass(2 * CHECK_MS);
  expect(topics(scene)).toEqual([]);
  await clock.pass(CHECK_MS);
  const message =
    'Sink shop is stopped.\nIt gets no changes (the receiver answered 410). When the cause is gone: npx catchword sink resume shop';
  expect(store.episodes.open()).toMatchObject([{ topic: 'sink:shop', message }]);
  scene.sink('shop', 'running');
  await clock.pass(5 * MINUTE);
  expect(topics(scene)).toEqual(['sink:shop']);
  await clock.pass(CHECK_MS);
  expect(topics(scene)).toEqual([]);
  const said = scene.lines.filter(({ topic }) => topic !== undefined).map(({ msg, topic }) => [msg, topic]);
  expect(said).toEqual([
    ['something is wrong', 'sink:shop'],
    ['it is over', 'sink:shop'],
  ]);
});

it('does not begin an episode for a problem that flickers', async () => {
  const scene = mirrorScene();
  scene.start([]);
  for (let turn = 0; turn < 50; turn++) {
    scene.sink('shop', turn % 3 === 2 ? 'running' : 'stopped');
    await scene.clock.pass(CHECK_MS);
    expect(topics(scene)).toEqual([]);
  }
});

it('sends ever fewer messages about a problem that comes and goes all day', async () => {
  const scene = mirrorScene();
  const { clock, store } = scene;
  scene.start([]);
  for (let turn = 0; turn < 40; turn++) {
    scene.sink('shop', 'stopped');
    await clock.pass(2 * MINUTE);
    scene.sink('shop', 'running');
    await clock.pass(30 * MINUTE);
  }
  expect(store.episodes.countSince('sink:shop', 0)).toBe(4);
});

it('continues an episode after a restart, and does not begin it again', async () => {
  const scene = mirrorScene();
  const { clock, store } = scene;
  const stop = scene.start([]);
  scene.sink('shop', 'stopped');
  await clock.pass(2 * MINUTE);
  const [open] = store.episodes.open();
  await stop();
  scene.start([]);
  await clock.pass(2 * MINUTE);
  expect(store.episodes.open()).toEqual([open]);
  expect(open).toMatchObject({ topic: 'sink:shop', endedAt: null });
});

it('writes nothing once another daemon has the lease', async () => {
  const scene = mirrorScene();
  const { clock, store } = scene;
  scene.start([]);
  await clock.pass(MINUTE);
  // As after a suspension that was longer than the lease.
  store.daemonLease.acquire(clock.now() + HOUR);
  scene.sink('shop', 'stopped');
  await clock.pass(HOUR);
  expect(topics(scene)).toEqual([]);
});

it('has one episode for 100 held runs, which counts them', async () => {
  const scene = mirrorScene();
  const { clock, store } = scene;
  scene.start([]);
  for (let run = 0; run < 100; run++) scene.ended({ state: 'held' }, 3);
  await clock.pass(2 * MINUTE);
  expect(store.episodes.open()).toMatchObject([
    { topic: 'held', message: expect.stringContaining('100 runs hold 300 removals for an approval.') as string },
  ]);
});

it('names the held run and what to do', async () => {
  const scene = mirrorScene();
  scene.start([]);
  const run = scene.ended({ state: 'held' }, 1);
  await scene.clock.pass(2 * MINUTE);
  expect(scene.store.episodes.open()[0]?.message).toBe(
    `Run ${run} holds 1 removal for an approval.\nNothing was removed. Look at them, then approve or reject the run: npx catchword run ${run}`,
  );
});

it('says so when a held run has nothing left to remove', async () => {
  const scene = mirrorScene();
  scene.start([]);
  const run = scene.ended({ state: 'held' });
  await scene.clock.pass(2 * MINUTE);
  expect(scene.store.episodes.open()[0]?.message).toMatch(`Run ${run} holds no removals any more.`);
});

it('notices a mirror that is stale, and one that was never complete', async () => {
  const scene = mirrorScene();
  const { clock } = scene;
  scene.start([]);
  await clock.pass(26 * HOUR + 9 * MINUTE);
  expect(topics(scene)).toEqual([]);
  await clock.pass(2 * MINUTE);
  expect(topics(scene)).toEqual(['stale']);
  scene.completed();
  await clock.pass(6 * MINUTE);
  expect(topics(scene)).toEqual([]);
});

it('notices runs that fail, once two in a row have', async () => {
  const scene = mirrorScene();
  const { clock, store } = scene;
  scene.start([]);
  const error = 'SOURCE_AUTH: the service rejected the API key';
  scene.ended({ state: 'failed', proof: null, error });
  await clock.pass(2 * MINUTE);
  expect(topics(scene)).toEqual([]);
  scene.ended({ state: 'failed', proof: null, error });
  await clock.pass(2 * MINUTE);
  expect(store.episodes.open()).toMatchObject([
    {
      topic: 'runs',
      message: `The newest 2 runs have failed.\ncatchword tries again by itself (${error}). See: npx catchword runs`,
    },
  ]);
  scene.ended({});
  await clock.pass(6 * MINUTE);
  expect(topics(scene)).toEqual([]);
});

it('notices a run that does not get through', async () => {
  const scene = mirrorScene();
  const { clock, store } = scene;
  scene.start([]);
  store.schedule.setRetry({ kind: 'full', at: clock.now(), reason: 'the source does not answer' });
  await clock.pass(9 * MINUTE);
  expect(topics(scene)).toEqual([]);
  await clock.pass(2 * MINUTE);
  expect(topics(scene)).toEqual(['runs']);
  expect(store.episodes.open()[0]?.message).toContain('(the source does not answer)');
});

it('notices full runs that are not sealed', async () => {
  const scene = mirrorScene();
  scene.start([]);
  for (let run = 0; run < 2; run++) {
    scene.ended({ proof: 'open', reasons: ['3 seams are open'] });
    // Deltas in between, such as one each quarter of an hour, change nothing.
    for (let delta = 0; delta < 60; delta++) scene.ended({ proof: null }, 0, 'delta');
  }
  await scene.clock.pass(2 * MINUTE);
  expect(topics(scene)).toEqual(['open']);
  expect(scene.store.episodes.open()[0]?.message).toContain('(3 seams are open)');
  scene.ended({});
  await scene.clock.pass(6 * MINUTE);
  expect(topics(scene)).toEqual([]);
});

it('notices a disk that is nearly full, and does not flicker around the limit', async () => {
  const scene = mirrorScene();
  const { clock, disk, store } = scene;
  scene.start([]);
  disk.free = 9;
  await clock.pass(11 * MINUTE);
  expect(topics(scene)).toEqual(['disk']);
  disk.free = 11;
  await clock.pass(HOUR);
  expect(topics(scene)).toEqual(['disk']);
  disk.free = 13;
  await clock.pass(6 * MINUTE);
  disk.free = 11;
  await clock.pass(HOUR);
  expect(topics(scene)).toEqual([]);
  expect(store.episodes.countSince('disk', 0)).toBe(1);
});

it('notices a long pause that the service asks for, and no short one', async () => {
  const scene = mirrorScene();
  const { clock, store } = scene;
  scene.start([]);
  store.source.notePause({ since: clock.now(), until: clock.now() + 30 * MINUTE });
  await clock.pass(5 * MINUTE);
  expect(topics(scene)).toEqual([]);
  store.source.notePause({ since: clock.now(), until: clock.now() + 2 * HOUR });
  await clock.pass(2 * MINUTE);
  expect(topics(scene)).toEqual(['pause']);
  await clock.pass(2 * HOUR + 6 * MINUTE);
  expect(topics(scene)).toEqual([]);
});

it('goes on when the disk cannot be examined', async () => {
  const scene = mirrorScene();
  let isBroken = true;
  const disk = () => {
    if (isBroken) throw new Error('ENOENT');
    return { free: 1, size: 2 };
  };
  scene.start([], { disk });
  scene.sink('shop', 'stopped');
  await scene.clock.pass(5 * MINUTE);
  expect(scene.lines.filter(({ level }) => level === 40)).toHaveLength(1);
  isBroken = false;
  await scene.clock.pass(2 * MINUTE);
  expect(topics(scene)).toEqual(['sink:shop']);
});

it('is not misled by a clock that is set', async () => {
  const scene = mirrorScene();
  const { clock, store } = scene;
  scene.start([]);
  scene.sink('shop', 'stopped');
  await clock.pass(2 * MINUTE);
  clock.set(-5 * HOUR);
  scene.sink('shop', 'running');
  await clock.pass(4 * MINUTE);
  expect(topics(scene)).toEqual(['sink:shop']);
  await clock.pass(2 * MINUTE);
  expect(topics(scene)).toEqual([]);
  expect(store.episodes.countSince('sink:shop', 0)).toBe(1);
});
