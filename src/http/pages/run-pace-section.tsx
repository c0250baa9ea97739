import type { paceSeries } from '../../report/run-pace.ts';
import { count, plural } from '../../report/text.ts';

interface PaceProps {
  /** Null if there are too few points for a chart, or if the record of the requests is gone. */
  readonly series: ReturnType<typeof paceSeries>;
  /** CATCHWORD_RATE_LIMIT, requests a minute; null without one. */
  readonly limit: number | null;
  readonly requests: number;
  /** A chart was possible, but when each request was made is not known any more. */
  readonly isGone: boolean;
}

/** Requests a minute over the time of the run, against the limit. */
export function Pace({ series, limit, requests, isGone }: PaceProps) {
  const rule =
    limit === null ? 'No limit is set (CATCHWORD_RATE_LIMIT is off).' : `The limit is ${count(limit)} a minute.`;
  if (series === null) {
    const why =
      requests === 0
        ? 'No request was answered yet.'
        : `${plural(requests, 'request')} in all.${isGone ? ' When each was made is kept only until a later run completes.' : ''}`;
    return <p>{`${why} ${rule}`}</p>;
  }
  const { from, step, requests: points } = series;
  const most = points.reduce((a, b) => Math.max(a, b), 0);
  return (
    <figure
      class="pace"
      data-from={from}
      data-step={step}
      data-requests={points.join(',')}
      data-limit={limit === null ? undefined : limit}
    >
      <figcaption>
        {`Each point counts the requests of the minute before it: at most ${count(most)}. ${plural(requests, 'request')} in all. ${rule}`}
      </figcaption>
      <div id="drawn-pace" data-drawn="" />
    </figure>
  );
}
