import { createHash, randomUUID } from 'node:crypto';
import { iso } from '@catchword/base/iso-time';
import { printable, printableLines } from '@catchword/base/printable';
import type { ProblemText } from '../../report/problem-text.ts';
import { duration, plural, time } from '../../report/text.ts';
import type { Episode, WaitingNotice } from '../../store/rows/incident-rows.ts';
import type { ChannelEvent, Message } from './channel.ts';

/** Who sends a message. */
export interface Sender {
  /** CATCHWORD_NAME. */
  readonly name: string | undefined;
  readonly host: string;
}

/** Texts of this many episodes are in one message; it counts the others. */
const LISTED = 20;
const MAX_SUBJECT = 120;

/** The text of an episode: its first line names the problem. */
export function episodeText({ title, advice }: ProblemText): string {
  return printableLines(`${printable(title)}.\n${printable(advice)}`);
}

function titleOf({ message }: Pick<Episode, 'message'>): string {
  return (message.split('\n', 1)[0] ?? '').replace(/\.$/, '');
}

/** Describes an episode in a message, also if its beginning was not delivered in time. */
function aboutEpisode({ message, beganAt, endedAt, phase, knowsBeginning, ...about }: WaitingNotice): string {
  if (phase === 'began' || endedAt === null) return `${message}\nSince ${time(beganAt)}.`;
  const times = `It began ${time(beganAt)} and ended ${time(endedAt)} (${duration(endedAt - beganAt)}).`;
  const late = knowsBeginning === 1 ? '' : '\nThe message about the beginning could not be delivered earlier.';
  return `Over: ${titleOf({ message, ...about })}.\n${times}${late}`;
}

/** Drops the beginning of each episode whose end waits as well. */
function withoutOvertaken(waiting: readonly WaitingNotice[]): WaitingNotice[] {
  const ended = new Set(waiting.filter(({ phase }) => phase === 'ended').map(({ episodeId }) => episodeId));
  return waiting.filter(({ phase, episodeId }) => phase === 'ended' || !ended.has(episodeId));
}

function signature({ name, host }: Sender): string {
  return `catchword${name === undefined ? '' : ` ${name}`} on ${host}`;
}

function subjectOf(text: string, { name }: Sender): string {
  const whole = `[catchword${name === undefined ? '' : ` ${name}`}] ${printable(text)}`;
  return whole.length > MAX_SUBJECT ? `${whole.slice(0, MAX_SUBJECT - 1)}…` : whole;
}

/** Makes one message of everything that waits for a channel. @param waiting at least one */
export function messageOf(waiting: readonly WaitingNotice[], incarnation: string, sender: Sender): Message {
  const shown = withoutOvertaken(waiting);
  const events = shown.map(({ episodeId, topic, message, beganAt, endedAt, phase }): ChannelEvent => {
    const ended = phase === 'ended' ? endedAt : null;
    return {
      id: `${incarnation}:episode:${episodeId}:${phase}`,
      type: `catchword.episode.${phase}`,
      topic,
      message: phase === 'ended' ? `Over: ${titleOf({ message })}.` : message.replace('\n', ' '),
      began_at: iso(beganAt) ?? '',
      ended_at: iso(ended),
      name: sender.name ?? null,
      host: sender.host,
    };
  });
  const titles = shown.map((one) => `${one.phase === 'ended' ? 'Over: ' : ''}${titleOf(one)}`);
  const texts = shown.slice(0, LISTED).map(aboutEpisode);
  const more =
    shown.length > LISTED ? [`… and ${plural(shown.length - LISTED, 'message')} more: npx catchword status`] : [];
  const [only = ''] = titles;
  const ids = events.map(({ id }) => id);
  return {
    id: ids.length === 1 ? (ids[0] ?? '') : createHash('sha256').update(ids.join()).digest('hex'),
    subject: subjectOf(
      titles.length === 1 ? only : `${plural(titles.length, 'message')}: ${titles.join('; ')}`,
      sender,
    ),
    text: [...texts, ...more, signature(sender)].join('\n\n'),
    events,
  };
}

/** The message of `catchword notify test`. */
export function testMessage(channel: string, sender: Sender, nowMs: number): Message {
  const id = `test:${randomUUID()}`;
  const message = `This is a test. Notifications of catchword reach the channel ${channel}.`;
  const at = iso(nowMs) ?? '';
  const event = { topic: 'test', message, began_at: at, ended_at: at, name: sender.name ?? null, host: sender.host };
  return {
    id,
    subject: subjectOf('This is a test', sender),
    text: `${message}\n\n${signature(sender)}`,
    events: [{ id, type: 'catchword.test', ...event }],
  };
}
