import { inRange, type Queries, type Range } from '../schema/queries.ts';
import type { episodes, notices } from '../schema/schema.ts';

/** Something that is wrong, or was. See schema.ts. */
export type Episode = Readonly<typeof episodes.$inferSelect>;

/** A message that a channel has not got yet, with the episode that it is about. */
export interface WaitingNotice
  extends Omit<Episode, 'id'>,
    Pick<typeof notices.$inferSelect, 'episodeId' | 'phase' | 'attempts' | 'nextTryAt' | 'firstTriedAt'> {
  /** Whether the channel has got the message about the beginning. */
  readonly knowsBeginning: 0 | 1;
}

type NoticeKey = Pick<WaitingNotice, 'episodeId' | 'phase'> & { readonly channel: string };

/** What a channel has got, and what it has not. Times are milliseconds since 1970. */
export interface ChannelState {
  readonly channel: string;
  readonly deliveredAt: number | null;
  /** Messages that are still tried. */
  readonly waiting: number;
  /** Messages that were given up since the last one that was delivered. */
  readonly givenUp: number;
  /** Why the newest message has not been delivered; null if it has been. */
  readonly error: string | null;
  /** When the waiting messages are tried again; null before the first try. */
  readonly nextTryAt: number | null;
}

/** What became of a message about an episode. */
export type SentNotice = Readonly<
  Omit<typeof notices.$inferSelect, 'episodeId' | 'firstTriedAt'> & { state: 'delivered' | 'given up' | 'waiting' }
>;

/** Which episodes: about a topic, and those that are open or over. */
export interface EpisodeFilter {
  readonly topic?: string | undefined;
  readonly state?: 'open' | 'ended' | undefined;
}

const IS_WAITING = 'delivered_at IS NULL AND next_try_at > 0';

type IncidentReader = ReturnType<typeof createIncidentReader>;

export function createIncidentReader({ rows, number }: Queries) {
  const columns = 'topic, message, began_at AS beganAt, ended_at AS endedAt';
  const list = inRange((order) =>
    rows<[Required<Range> & { limit: number; only: string }], Episode>(
      `SELECT id, ${columns} FROM episodes WHERE id < :before AND id > :after
       AND topic = coalesce(:only ->> 'topic', topic)
       AND iif(ended_at IS NULL, 'open', 'ended') = coalesce(:only ->> 'state', iif(ended_at IS NULL, 'open', 'ended'))
       ORDER BY id ${order} LIMIT :limit`,
    ),
  );
  return {
    /** Episodes within a range that are so. */
    list: (limit: number, only: Range & EpisodeFilter = {}) => {
      const { query, range } = list(only);
      return query({ ...range, limit, only: JSON.stringify(only) });
    },
    /** The messages about an episode. */
    messages: rows<[id: number], SentNotice>(
      `SELECT channel, phase, attempts, next_try_at AS nextTryAt, delivered_at AS deliveredAt, error,
         CASE WHEN delivered_at IS NOT NULL THEN 'delivered' WHEN next_try_at = 0 THEN 'given up' ELSE 'waiting' END AS state
       FROM notices WHERE episode_id = ? ORDER BY phase, channel`,
    ),
    /** Episodes that have not ended, oldest first. */
    open: rows<[], Episode>(`SELECT id, ${columns} FROM episodes WHERE ended_at IS NULL ORDER BY id`),
    /** How many episodes of the topic began since a time. */
    countSince: number<[topic: string, sinceMs: number]>(
      'SELECT count(*) FROM episodes WHERE topic = ? AND began_at >= ?',
    ),
    /** What a channel is to get, oldest first; without what was given up. */
    waiting: rows<[channel: string], WaitingNotice>(
      `SELECT episode_id AS episodeId, phase, attempts, next_try_at AS nextTryAt, first_tried_at AS firstTriedAt, ${columns},
         EXISTS (SELECT 1 FROM notices AS first WHERE first.channel = notices.channel
           AND first.episode_id = notices.episode_id AND first.phase = 'began' AND first.delivered_at IS NOT NULL)
           AS knowsBeginning
       FROM notices JOIN episodes ON episodes.id = episode_id
       WHERE channel = ? AND ${IS_WAITING} ORDER BY episode_id, phase`,
    ),
    /** The state of each channel that was ever to get a message that is still kept. */
    channels: rows<[], ChannelState>(
      `SELECT channel, max(delivered_at) AS deliveredAt, sum(${IS_WAITING}) AS waiting,
         sum(delivered_at IS NULL AND next_try_at = 0) AS givenUp,
         max(CASE WHEN ${IS_WAITING} AND attempts > 0 THEN next_try_at END) AS nextTryAt,
         (SELECT error FROM notices AS newest WHERE newest.channel = notices.channel
            ORDER BY episode_id DESC, phase DESC LIMIT 1) AS error
       FROM notices GROUP BY channel ORDER BY channel`,
    ),
  };
}

/** Written by the active daemon, or the keeper. */
export function createIncidentWriter({ number, write }: Queries, reader: IncidentReader) {
  const begin = number<[Omit<Episode, 'id' | 'endedAt'>]>(
    'INSERT INTO episodes (topic, message, began_at) VALUES (:topic, :message, :beganAt) RETURNING id',
  );
  const end = write<[atMs: number, id: number]>('UPDATE episodes SET ended_at = ? WHERE id = ? AND ended_at IS NULL');
  const note = write<[{ id: number; phase: WaitingNotice['phase']; atMs: number; channels: string }]>(
    `INSERT OR IGNORE INTO notices (channel, episode_id, phase, next_try_at)
     SELECT value, :id, :phase, :atMs FROM json_each(:channels)`,
  );
  const drop = write<[channels: string]>(
    'DELETE FROM notices WHERE delivered_at IS NULL AND channel NOT IN (SELECT value FROM json_each(?))',
  );
  const ofNotice = 'WHERE channel = :channel AND episode_id = :episodeId AND phase = :phase';
  const pruneEpisodes = write<[beforeMs: number]>('DELETE FROM episodes WHERE ended_at < ?');
  const pruneNotices = write<[]>('DELETE FROM notices WHERE episode_id NOT IN (SELECT id FROM episodes)');

  return {
    ...reader,
    /** Begins an episode, with a message to each channel. */
    begin: (topic: string, message: string, atMs: number, channels: readonly string[]): void => {
      const id = begin({ topic, message, beganAt: atMs });
      note({ id, phase: 'began', atMs, channels: JSON.stringify(channels) });
    },
    /** Says of an open episode what is known since. */
    restate: write<[message: string, id: number]>('UPDATE episodes SET message = ? WHERE id = ?'),
    /** Ends an episode, with a message to each channel. */
    end: (id: number, atMs: number, channels: readonly string[]): void => {
      if (end(atMs, id) > 0) note({ id, phase: 'ended', atMs, channels: JSON.stringify(channels) });
    },
    /** Notes which channels the settings name: a new one gets a message about what is open, others get nothing more. */
    setChannels: (channels: readonly string[], atMs: number): void => {
      const names = JSON.stringify(channels);
      drop(names);
      for (const { id } of reader.open()) note({ id, phase: 'began', atMs, channels: names });
    },
    delivered: write<[NoticeKey & { atMs: number }]>(
      `UPDATE notices SET delivered_at = :atMs, attempts = attempts + 1, error = NULL ${ofNotice}`,
    ),
    /** `nextTryAtMs`: 0 to give it up. */
    failed: write<[NoticeKey & { error: string; firstTriedAt: number; nextTryAtMs: number }]>(
      `UPDATE notices SET error = :error, next_try_at = :nextTryAtMs, attempts = attempts + 1,
         first_tried_at = :firstTriedAt ${ofNotice}`,
    ),
    /** Forgets episodes that ended before a time, with their messages. */
    prune: (beforeMs: number): void => {
      if (pruneEpisodes(beforeMs) > 0) pruneNotices();
    },
  };
}
