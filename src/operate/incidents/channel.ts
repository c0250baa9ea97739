import type { SinkSettings } from '@catchword/sink-kit/sink';

/** Beginning or end of one episode, for programs. Times are ISO 8601, UTC. */
export interface ChannelEvent {
  /** Each try has the same id, so that a receiver recognises a repeated message. */
  readonly id: string;
  readonly type: 'catchword.episode.began' | 'catchword.episode.ended' | 'catchword.test';
  /** Names the problem, such as `stale` or `sink:shop`. */
  readonly topic: string;
  readonly message: string;
  readonly began_at: string;
  readonly ended_at: string | null;
  /** CATCHWORD_NAME; null if it is not set. */
  readonly name: string | null;
  readonly host: string;
}

/** One message: usually about one event, but all events that wait at the same time share a message. */
export interface Message {
  readonly id: string;
  /** One line. */
  readonly subject: string;
  readonly text: string;
  readonly events: readonly ChannelEvent[];
}

/**
 * Sends one message within a time limit of its own, and leaves nothing open.
 * @returns what else the operator should know, such as addresses that the server refused; null if all is well
 * @throws SinkError, or anything: the message is tried again
 */
export type Send = (message: Message, signal: AbortSignal) => Promise<string | null>;

/** The settings of a channel. They contain credentials: do not log them. */
export type ChannelSettings = Pick<SinkSettings, 'url' | 'secret' | 'headers' | 'proxies' | 'hide'>;

/** @throws CatchwordError CONFIG_INVALID */
export type ChannelFactory = (settings: ChannelSettings) => Send;
