import { count, plural, time } from '../../report/text.ts';
import type { Store } from '../../store/store.ts';
import type { Section } from './page-view.ts';

const DAY_MS = 86_400_000;
/** The size of a curve, in units that its width stretches. */
const [WIDTH, HEIGHT] = [288, 60];

type Point = readonly [at: number, value: number];

/** A line through points of the last 24 hours, drawn on the server: it needs no script. */
function Curve({ name, points, nowMs, now }: { name: string; points: readonly Point[]; nowMs: number; now: string }) {
  const most = Math.max(...points.map(([, value]) => value));
  const x = (at: number) => Math.round((1 - (nowMs - at) / DAY_MS) * WIDTH * 10) / 10;
  const y = (value: number) => Math.round((1 - value / Math.max(1, most)) * HEIGHT * 10) / 10;
  const line = points.map(([at, value]) => `${x(at)},${y(value)}`).join(' ');
  const words = `${name}: ${now}; at most ${count(most)} since ${time(points[0]?.[0] ?? nowMs)}`;
  return (
    <figure class="curve">
      <figcaption>{words}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={words}>
        <polyline points={line} />
      </svg>
    </figure>
  );
}

/** How far a sink was behind, and how fast it went, in the last 24 hours: the daemon notes both every five minutes. */
export function curvesSection(store: Store, sinkId: number, nowMs: number): Section {
  const found = store.points.since(sinkId, nowMs - DAY_MS).filter(({ at }) => at <= nowMs);
  const last = found.at(-1);
  const section = { id: 'curves', title: 'The last 24 hours', live: true } as const;
  if (last === undefined || found.length < 2) {
    return { ...section, content: <p>Curves appear here when a daemon has run for ten minutes.</p> };
  }
  const rates = found.slice(1).map(({ at, delivered }, nth): Point => {
    const before = found[nth] ?? last;
    return [at, Math.max(0, ((delivered - before.delivered) * 1000) / (at - before.at))];
  });
  const rate = rates.at(-1)?.[1] ?? 0;
  const content = (
    <>
      <Curve
        name="Behind"
        points={found.map(({ at, behind }) => [at, behind])}
        nowMs={nowMs}
        now={`${plural(last.behind, 'change')} at ${time(last.at)}`}
      />
      <Curve name="Events a second" points={rates} nowMs={nowMs} now={`${count(rate)} before ${time(last.at)}`} />
    </>
  );
  return { ...section, content };
}
