import { iso } from '@catchword/base/iso-time';
import * as z from 'zod';
import { plural } from '../report/text.ts';
import type { Reader } from '../store/schema/reader.ts';
import { COUNT, type Row, schemaOf, TIME, type Tone } from './shown-row.ts';

/** A channel of the settings, without its secrets. */
export interface ConfiguredChannel {
  readonly name: string;
  readonly kind: string;
  readonly address: string;
}

/** The channels of the settings, and what each has got. */
export function seenChannels({ episodes }: Reader, configured: readonly ConfiguredChannel[]) {
  const known = episodes.channels();
  const none = { deliveredAt: null, waiting: 0, givenUp: 0, error: null, nextTryAt: null };
  return configured.map((one) => ({ ...one, ...(known.find(({ channel }) => channel === one.name) ?? none) }));
}

export type ChannelSeen = ReturnType<typeof seenChannels>[number];

const warnsOf = (count: number): Tone => (count > 0 ? 'warn' : 'soft');

// biome-ignore format: a row is a line.
export const CHANNEL = [
  { key: 'name', label: 'Channel', list: 'column', schema: z.string(), about: 'The name: the end of CATCHWORD_NOTIFY_<NAME>, in lower case.', value: ({ name }) => name },
  { key: 'kind', schema: z.string(), about: '`webhook`, `slack` or `smtp`.', value: ({ kind }) => kind },
  { key: 'address', label: 'Where', list: 'column', schema: z.string(), about: 'Where it is, without credentials.', value: ({ address }) => address, text: ({ kind, address }) => `${kind} ${address}` },
  { key: 'delivered_at', label: 'Last message', list: 'column', schema: TIME.nullable(), about: 'When it last took a message; null: never, or none is kept.', value: ({ deliveredAt }) => iso(deliveredAt), text: ({ deliveredAt }) => deliveredAt === null ? 'no message so far' : { at: deliveredAt } },
  { key: 'waiting', label: 'Waiting', list: 'column', schema: COUNT, about: 'Messages that are still tried.', value: ({ waiting }) => waiting, tone: ({ waiting }) => warnsOf(waiting) },
  { key: 'given_up', label: 'Given up', list: 'column', schema: COUNT, about: 'Messages that were given up since the last one that it took.', value: ({ givenUp }) => givenUp, tone: ({ givenUp }) => warnsOf(givenUp) },
  { key: 'error', label: 'Last error', list: 'long', schema: z.string().nullable(), about: 'Why it did not take the newest message; null: it did.', value: ({ error }) => error, tone: () => 'warn' },
  { key: 'next_try_at', label: 'Next try', list: 'long', schema: TIME.nullable(), about: 'When the waiting messages are tried again.', value: ({ nextTryAt }) => iso(nextTryAt), text: ({ nextTryAt }) => nextTryAt === null ? null : { at: nextTryAt } },
] as const satisfies readonly Row<ChannelSeen>[];

export const CHANNEL_SCHEMA = schemaOf('Channel', 'Where notifications go.', CHANNEL);

/** What a person should know of a channel, in a sentence; null if it takes its messages. */
export function channelTrouble({ name, waiting, givenUp }: ChannelSeen): string | null {
  const counts = { 'given up': givenUp, waiting };
  const said = Object.entries(counts).flatMap(([what, many]) =>
    many === 0 ? [] : [`${plural(many, 'message')} ${what}`],
  );
  return said.length === 0 ? null : `The channel ${name} does not take its messages: ${said.join(', ')}`;
}
