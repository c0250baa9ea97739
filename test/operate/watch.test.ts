import { expect, it } from 'vitest';
import { CHECK_MS } from '../../src/operate/incidents/incident-tracker.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { inTrouble, MINUTE, mirrorScene } from './scene.ts';

const HOUR = 60 * MINUTE;

type Scene = ReturnType<typeof mirrorScene>;

/** A mirror that a notifier without channels watches. */
function watched(): Scene {
  const scene = mirrorScene();
  scene.start([]);
  return scene;
}

function topics({ store }: Scene): string[] {
  return store.episodes.open().map(({ topic }) => topic);
}

it('begins an episode when a problem has lasted for a minute, and ends it 5 minutes after it is gone', async () => {
  const scene = watched();
  const { clock, store } = scene;
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

it('a problem that flickers begins no episode', async () => {
  const scene = watched();
  for (let turn = 0; turn < 50; turn++) {
    scene.sink('shop', turn % 3 === 2 ? 'running' : 'stopped');
    await scene.clock.pass(CHECK_MS);
    expect(topics(scene)).toEqual([]);
  }
});

it('sends ever fewer messages about a problem that comes and goes all day', { tags: ['slow'] }, async () => {
  const scene = watched();
  const { clock, store } = scene;
  for (let turn = 0; turn < 40; turn++) {
    scene.sink('shop', 'stopped');
    await clock.pass(2 * MINUTE);
    scene.sink('shop', 'running');
    await clock.pass(30 * MINUTE);
  }
  expect(store.episodes.countSince('sink:shop', 0)).toBe(4);
});

it('continues an episode after a restart, and does not begin it again', async () => {
  const scene = await inTrouble([]);
  const { clock, store } = scene;
  const [open] = store.episodes.open();
  await scene.stop();
  scene.start([]);
  await clock.pass(2 * MINUTE);
  expect(store.episodes.open()).toEqual([open]);
  expect(open).toMatchObject({ topic: 'sink:shop', endedAt: null });
});

it('notices that a sink is held, also if it has failed for ten minutes before', async () => {
  const scene = watched();
  const { clock, store } = scene;
  const failing = (error: string | null) =>
    writeUnder(store.relayLease, clock.now(), ({ sinks }) => {
      const { id } = store.sinks.get('shop') ?? { id: 0 };
      if (error === null) sinks.clearError(id);
      else sinks.fail(id, error, clock.now(), clock.now() + MINUTE);
    });
  scene.sink('shop', 'running');
  failing('its store does not answer');
  await clock.pass(11 * MINUTE);
  expect(store.episodes.open()).toMatchObject([
    { topic: 'failing:shop', message: expect.stringContaining('Sink shop fails.') as string },
  ]);
  failing(null);
  scene.hold('shop');
  await clock.pass(2 * MINUTE);
  expect(topics(scene)).toEqual(['failing:shop', 'sink:shop']);
  await clock.pass(4 * MINUTE);
  expect(topics(scene)).toEqual(['sink:shop']);
});

it('writes nothing once another daemon has the lease', async () => {
  const scene = watched();
  const { clock, store } = scene;
  await clock.pass(MINUTE);
  // As after a suspension that was longer than the lease.
  store.daemonLease.acquire(clock.now() + HOUR);
  scene.sink('shop', 'stopped');
  await clock.pass(HOUR);
  expect(topics(scene)).toEqual([]);
});

it.each([
  [[3, 3, 3], '3 runs hold 9 removals for an approval.'],
  [
    [1],
    'Run 1 holds 1 removal for an approval.\nNothing was removed. Look at them, then approve or reject the run: npx catchword run 1',
  ],
  [[0], 'Run 1 holds no removals any more.'],
])('one episode tells about the runs that hold %j removals', async (removals, message) => {
  const scene = watched();
  for (const held of removals) scene.ended({ state: 'held' }, held);
  await scene.clock.pass(2 * MINUTE);
  expect(scene.store.episodes.open()).toMatchObject([
    { topic: 'held', message: expect.stringContaining(message) as string },
  ]);
});

const failure = { state: 'failed', proof: null, error: 'SOURCE_AUTH: the service rejected the API key' } as const;

interface Noticed {
  readonly topic: string;
  readonly message: string;
  /** What happens before the problem has lasted for long enough, and how long that takes. */
  readonly early: (scene: Scene) => unknown;
  readonly quietMs: number;
  /** What happens after that. */
  readonly late?: (scene: Scene) => unknown;
}

const NOTICED: Record<string, Noticed> = {
  'a mirror that is stale': { topic: 'stale', message: 'stale', early: () => {}, quietMs: 26 * HOUR + 9 * MINUTE },
  'two runs in a row that fail': {
    topic: 'runs',
    message: `The newest 2 runs have failed.\ncatchword tries again by itself (${failure.error}). See: npx catchword runs`,
    early: ({ ended }) => ended(failure),
    quietMs: 2 * MINUTE,
    late: ({ ended }) => ended(failure),
  },
  'a run that does not get through': {
    topic: 'runs',
    message: '(the source does not answer)',
    early: ({ store, clock }) =>
      store.schedule.setRetry({ kind: 'full', at: clock.now(), reason: 'the source does not answer' }),
    quietMs: 9 * MINUTE,
  },
  'two full runs that are not sealed, whatever the deltas between them': {
    topic: 'open',
    message: '(the source changed faster than its deltas could be read)',
    early: ({ ended }) => ended({ proof: 'open', reasons: [{ code: 'restless' }] }),
    quietMs: 2 * MINUTE,
    late: ({ ended }) => {
      for (let delta = 0; delta < 60; delta++) ended({ proof: null }, 0, 'delta');
      ended({ proof: 'open', reasons: [{ code: 'restless' }] });
    },
  },
  'a long pause that the service asks for, and no short one': {
    topic: 'pause',
    message: 'The service asked catchword to wait until',
    early: ({ store, clock }) => store.source.notePause({ since: clock.now(), until: clock.now() + 30 * MINUTE }),
    quietMs: 5 * MINUTE,
    late: ({ store, clock }) => store.source.notePause({ since: clock.now(), until: clock.now() + 2 * HOUR }),
  },
};

it.each(Object.entries(NOTICED))('the notifier notices %s', async (_, { topic, message, early, quietMs, late }) => {
  const scene = watched();
  early(scene);
  await scene.clock.pass(quietMs);
  expect(topics(scene)).toEqual([]);
  late?.(scene);
  await scene.clock.pass(2 * MINUTE);
  expect(topics(scene)).toEqual([topic]);
  expect(scene.store.episodes.open()[0]?.message).toContain(message);
});

it('notices a disk that is nearly full, and does not flicker around the limit', async () => {
  const scene = watched();
  const { clock, disk, store } = scene;
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

it('a clock that is set does not mislead the notifier', async () => {
  const scene = await inTrouble([]);
  const { clock, store } = scene;
  clock.set(-5 * HOUR);
  scene.sink('shop', 'running');
  await clock.pass(4 * MINUTE);
  expect(topics(scene)).toEqual(['sink:shop']);
  await clock.pass(2 * MINUTE);
  expect(topics(scene)).toEqual([]);
  expect(store.episodes.countSince('sink:shop', 0)).toBe(1);
});

it('a message about an unusual run has the final numbers of the run', async () => {
  const scene = watched();
  scene.unusual();
  await scene.clock.pass(CHECK_MS);
  const message = () => scene.store.episodes.open().find(({ topic }) => topic === 'unusual')?.message;
  expect(message()).toContain('emptied prices of 2,400 of 40,000 products');
  const about = { from: 1, field: 'prices', products: 40_000, living: 40_000 };
  writeUnder(scene.store.keeperLease, scene.clock.now(), ({ runs }) => runs.noteLosses(1, { prices: 40_000 }, about));
  await scene.clock.pass(CHECK_MS);
  expect(message()).toContain('emptied prices of 40,000 of 40,000 products');
});

it('the daemon notes how far each sink is every five minutes, for a day', async () => {
  const scene = watched();
  const { clock, store } = scene;
  scene.sink('shop', 'running');
  const { id = 0 } = store.sinks.get('shop') ?? {};
  const beganAt = clock.now();
  await clock.pass(16 * MINUTE);
  const points = store.points.since(id, 0);
  expect(points).toHaveLength(3);
  expect(points[0]).toEqual({ at: expect.any(Number) as number, behind: store.changes.lastSeq(), delivered: 0 });
  await clock.pass(25 * HOUR);
  const kept = store.points.since(id, 0);
  expect([kept.length > 280 && kept.length < 300, (kept[0]?.at ?? 0) > beganAt + HOUR / 2]).toEqual([true, true]);
});
