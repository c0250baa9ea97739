import { time } from '../../report/text.ts';

/** A time, in UTC. @param at milliseconds since 1970, or ISO 8601; null: a dash */
export function When({ at }: { readonly at: number | string | null }) {
  if (at === null) return <>–</>;
  return <time dateTime={new Date(at).toISOString()}>{time(at)}</time>;
}
