import { systemClock } from '@catchword/base/clock';
import { execute } from '@catchword/testing/sqlite';
import { expect, it } from 'vitest';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { serve } from '../http/place.ts';
import { MINUTE, mirrorScene } from '../operate/scene.ts';

const HOUR = 60 * MINUTE;
const MIN_FREE = 20;

type Scene = ReturnType<typeof mirrorScene>;

interface Row {
  readonly arrange: (scene: Scene) => void;
  readonly freshness?: 'empty' | 'stale' | 'clock';
  readonly problems?: readonly string[];
  /** Why `/readyz` answers 503. */
  readonly unready?: RegExp;
  /** What the overview says. */
  readonly page: RegExp;
}

const open = { proof: 'open', reasons: [{ code: 'seams', list: 'list', open: 3, seams: 9 }] } as const;
const failed = { state: 'failed', proof: null, error: 'SOURCE_UNAVAILABLE: no answer' } as const;

function end(scene: Scene, ...ends: Parameters<Scene['ended']>[0][]): void {
  for (const one of ends) scene.ended(one);
}

const STATES: Record<string, Row> = {
  'a fresh mirror': { arrange: () => {}, page: /Up to date/ },
  'an empty mirror': {
    arrange: ({ db }) => execute(db, 'UPDATE mirror SET watermark = NULL, source_seen = NULL, local_seen = NULL'),
    freshness: 'empty',
    unready: /the first full load has not finished/,
    page: /Not complete yet/,
  },
  'a mirror that was not complete for long': {
    arrange: (scene) => {
      execute(scene.db, 'UPDATE mirror SET watermark = NULL, source_seen = NULL, local_seen = NULL');
      end(scene, failed);
      scene.clock.set(27 * HOUR);
    },
    freshness: 'empty',
    problems: ['stale'],
    unready: /the first full load has not finished/,
    page: /The mirror has never been complete/,
  },
  'a stale mirror': {
    arrange: ({ clock }) => clock.set(27 * HOUR),
    freshness: 'stale',
    problems: ['stale'],
    unready: /older than CATCHWORD_READY_MAX_AGE/,
    page: /The mirror is stale.*Too old to rely on/,
  },
  'a clock that was ahead when the mirror was completed': {
    arrange: ({ clock }) => clock.set(-27 * HOUR),
    freshness: 'clock',
    problems: ['stale'],
    unready: /age is unknown/,
    page: /The age of the mirror is unknown.*Age unknown/,
  },
  'a clock that was put back a little': { arrange: ({ clock }) => clock.set(-1 * HOUR), page: /Up to date/ },
  'a run that failed': { arrange: (scene) => end(scene, failed), page: /The last run failed.*Usable/ },
  'runs that fail': {
    arrange: (scene) => end(scene, failed, failed),
    problems: ['runs'],
    page: /The last 2 runs failed.*Usable/,
  },
  'full runs that are open twice': {
    arrange: (scene) => end(scene, open, open),
    problems: ['open'],
    page: /The last 2 full runs could not prove/,
  },
  'a run that failed between two open ones': {
    arrange: (scene) => end(scene, open, failed, open),
    problems: ['open'],
    page: /The last 2 full runs could not prove/,
  },
  'a run that failed after an open one': {
    arrange: (scene) => end(scene, open, failed),
    page: /The last run failed.*could not prove that it saw every product: 3 of 9 seams/,
  },
  'so many runs that fail after open ones that these are not among the newest': {
    arrange: (scene) => end(scene, open, open, ...Array.from({ length: 60 }, () => failed)),
    problems: ['runs', 'open'],
    page: /The last 50 runs failed.*could not prove that it saw every product: 3 of 9 seams/,
  },
  'so many runs that fail after the end of an unusual one': {
    arrange: (scene) => {
      scene.unusual();
      end(scene, {}, ...Array.from({ length: 60 }, () => failed));
    },
    problems: ['runs'],
    page: /The last 50 runs failed/,
  },
  'held removals': {
    arrange: (scene) => {
      scene.ended({ state: 'held' }, 2);
    },
    problems: ['held'],
    page: /Run 1 would remove 2 products/,
  },
  'an unusual run': {
    arrange: (scene) => scene.unusual(),
    problems: ['unusual'],
    page: /Run 1 is unusual: it emptied prices of 2,400 of 40,000 products/,
  },
  'a usual run after an unusual one': {
    arrange: (scene) => {
      scene.unusual();
      end(scene, {});
    },
    page: /Up to date/,
  },
  'a delta, and a full run that is held, after an unusual run': {
    arrange: (scene) => {
      scene.unusual();
      scene.ended({ proof: null }, 0, 'delta');
      scene.ended({ state: 'held' });
    },
    problems: ['unusual', 'held'],
    page: /Run 1 is unusual.*because it is a copy\. Check the source, and the settings/,
  },
  'a usual run after an unusual one for which a sink waits': {
    arrange: (scene) => {
      scene.sink('shop', 'running');
      scene.unusual();
      end(scene, {});
    },
    problems: ['unusual'],
    page: /Run 1 is unusual.*because it is a copy\. Run 2, which came later, is not unusual: look whether the values are back.*Waiting for you: shop\. How to let it go on: npx catchword sink list/,
  },
  'a usual run after an unusual one that a sink does not wait for': {
    arrange: (scene) => {
      scene.unusual();
      scene.sink('shop', 'running');
      end(scene, {});
    },
    page: /Up to date/,
  },
  'a sink that is held': {
    arrange: (scene) => {
      scene.sink('shop', 'running');
      scene.hold('shop');
    },
    problems: ['sink:shop'],
    unready: /sink shop is held/,
    page: /The sink shop is held: it receives nothing.*remove 299 of the 300 that the store has/,
  },
  'a run that failed after an unusual one': {
    arrange: (scene) => {
      scene.unusual();
      end(scene, failed);
    },
    problems: ['unusual'],
    page: /Run 1 is unusual/,
  },
  'a sink that is stopped': {
    arrange: (scene) => scene.sink('shop', 'stopped', 'answered 410'),
    problems: ['sink:shop'],
    unready: /sink shop is stopped/,
    page: /The sink shop is stopped: it receives nothing/,
  },
  'a sink that fails although nothing waits for it': {
    arrange: ({ sink, store, clock }) => {
      sink('shop', 'running');
      writeUnder(store.relayLease, clock.now(), ({ sinks }) => {
        const { id = 0 } = sinks.get('shop') ?? {};
        sinks.fail(id, 'its fill cannot end', clock.now(), clock.now() + HOUR);
      });
    },
    problems: ['failing:shop'],
    page: /Sink shop fails\..*its fill cannot end/,
  },
  'a disk that is low': {
    arrange: ({ disk }) => {
      disk.free = MIN_FREE - 1;
    },
    problems: ['disk'],
    page: /The disk of the mirror is nearly full: 19% is free.*CATCHWORD_MIN_FREE/,
  },
  'a pause that the service asked for': {
    arrange: ({ store, clock }) => store.source.notePause({ since: clock.now(), until: clock.now() + 2 * HOUR }),
    problems: ['pause'],
    page: /The service asked for no request before/,
  },
};

function metricsOf(text: string, name: string, label: string): string[] {
  const lines = text.matchAll(new RegExp(`^catchword_${name}\\{${label}="([^"]+)"\\} ([1-9]\\d*)$`, 'gm'));
  return [...lines].map(([, value = '']) => value);
}

it.each(Object.entries(STATES))('the state of the mirror is the same everywhere: %s', async (_name, row) => {
  const { arrange, freshness = 'fresh', problems = [], unready, page } = row;
  const scene = mirrorScene();
  const { clock, disk, store } = scene;
  arrange(scene);
  const { web } = await serve(scene.db, {
    clock: { ...systemClock, now: () => clock.now() },
    readyMaxAgeMs: 26 * HOUR,
    minFreeBytes: MIN_FREE,
    disk: () => disk,
  });
  const get = async (path: string) => await (await fetch(`${web.url}${path}`)).text();

  const status = JSON.parse(await get('/api/status')) as Record<string, unknown>;
  expect(status).toMatchObject({ freshness, problems });
  expect(status.age_seconds === null).toBe(freshness === 'empty' || freshness === 'clock');

  const readiness = JSON.parse(await get('/readyz')) as { readonly ready: boolean; readonly reason: string | null };
  expect(readiness).toMatchObject({
    ready: unready === undefined,
    reason: unready === undefined ? null : (expect.stringMatching(unready) as string),
  });

  expect((await get('/')).replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ')).toMatch(page);

  const metrics = await get('/metrics');
  expect(metricsOf(metrics, 'mirror_freshness', 'state')).toEqual([freshness]);
  expect(metricsOf(metrics, 'problems', 'topic')).toEqual(problems.map((name) => name.split(':')[0]));
  expect(metrics.includes('\ncatchword_mirror_age_seconds ')).toBe(status.age_seconds !== null);

  scene.start([], { minFreeBytes: MIN_FREE });
  await clock.pass(11 * MINUTE);
  expect(store.episodes.open().map(({ topic }) => topic)).toEqual(problems);
});
