import { plural, time } from '../../report/text.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A length of time in words that do not change every second. @param ms milliseconds */
export function roughly(ms: number): string {
  if (ms < MINUTE_MS) return 'less than a minute';
  if (ms < 2 * HOUR_MS) return plural(Math.round(ms / MINUTE_MS), 'minute');
  if (ms < 48 * HOUR_MS) return plural(Math.round(ms / HOUR_MS), 'hour');
  return plural(Math.round(ms / (24 * HOUR_MS)), 'day');
}

/** A time, in UTC. @param at milliseconds since 1970, or ISO 8601; null: a dash */
export function When({ at }: { readonly at: number | string | null }) {
  if (at === null) return <>–</>;
  return <time dateTime={new Date(at).toISOString()}>{time(at)}</time>;
}

/** The same after a comma; nothing for null. */
export function CommaWhen({ at }: { readonly at: string | null }) {
  if (at === null) return null;
  return (
    <>
      , <When at={at} />
    </>
  );
}
