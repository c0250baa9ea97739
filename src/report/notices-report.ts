import { iso } from '../base/iso-time.ts';
import type { Reader } from '../store/schema/reader.ts';
import { plural, time } from './text.ts';

/** Problems that are open, as `status --json` prints it. */
export function episodesJson({ episodes }: Reader) {
  return episodes.open().map(({ topic, message, beganAt }) => {
    return { topic, message: message.replace('\n', ' '), began_at: iso(beganAt) };
  });
}

/** The configured channels that notifications go to, and what each has got, as `status --json` prints them. */
export function channelStatuses(
  { episodes }: Reader,
  configured: readonly { readonly name: string; readonly kind: string; readonly address: string }[],
) {
  const known = episodes.channels();
  return configured.map(({ name, kind, address }) => {
    const state = known.find(({ channel }) => channel === name);
    return {
      name,
      kind,
      address,
      delivered_at: iso(state?.deliveredAt ?? null),
      waiting: state?.waiting ?? 0,
      given_up: state?.givenUp ?? 0,
      error: state?.error ?? null,
      next_try_at: iso(state?.nextTryAt ?? null),
    };
  });
}

/** A channel, for a person. */
export function channelText(channel: ReturnType<typeof channelStatuses>[number]): string {
  const { name, kind, delivered_at: at, waiting, given_up: givenUp, error, next_try_at: next } = channel;
  const parts = [at === null ? 'no message so far' : `last message ${time(at)}`];
  if (waiting > 0) parts.push(`${plural(waiting, 'message')} waiting${next === null ? '' : ` until ${time(next)}`}`);
  if (givenUp > 0) parts.push(`${plural(givenUp, 'message')} given up`);
  return `${name}: ${kind}, ${parts.join(', ')}${error === null ? '' : `: ${error}`}`;
}
