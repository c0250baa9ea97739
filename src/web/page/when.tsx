import { time } from '../../report/text.ts';

/** A time, in UTC. @param at milliseconds since 1970; null: a dash */
export function When({ at }: { readonly at: number | null }) {
  if (at === null) return <>–</>;
  return <time dateTime={new Date(at).toISOString()}>{time(at)}</time>;
}
