import { createHttpTarget, type Posted } from '@catchword/sink-kit/http-target';
import { readOptions, wholeOption } from '@catchword/sink-kit/sink-options';
import * as z from 'zod';
import type { ChannelFactory, ChannelSettings, Message, Send } from '../channel.ts';

const OPTIONS = {
  timeout: wholeOption(1, 110).default(15),
  allow: z.enum(['private'], 'private').optional(),
};

const JSON_TYPE = 'application/json; charset=utf-8';

function createHttpChannel(settings: ChannelSettings, bodyOf: (message: Message) => string): Send {
  const options = readOptions(settings.url, OPTIONS, [], {});
  const isPrivateAllowed = options.allow === 'private';
  const target = createHttpTarget({ ...settings, timeoutMs: options.timeout * 1_000, isPrivateAllowed });
  return async (message, signal) => {
    const posted: Posted = { id: message.id, contentType: JSON_TYPE, body: bodyOf(message) };
    const agent = target.connect();
    try {
      await target.post(agent, posted, signal);
    } finally {
      await agent.destroy();
    }
    return null;
  };
}

/** Posts the event as JSON, signed per Standard Webhooks; several events as a list of them. */
export const createWebhookChannel: ChannelFactory = (settings) =>
  createHttpChannel(settings, ({ events }) => {
    const [first] = events;
    return JSON.stringify(events.length === 1 ? first : { type: 'catchword.episodes', episodes: events });
  });

/** Characters that Slack gives a meaning: with them, a text could mention everybody or disguise a link. */
const SLACK_ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** Posts the text to an incoming webhook of Slack, or of a program that understands the same. */
export const createSlackChannel: ChannelFactory = (settings) =>
  createHttpChannel(settings, ({ text }) =>
    JSON.stringify({ text: text.replace(/[&<>]/g, (character) => SLACK_ESCAPES[character] ?? '') }),
  );
