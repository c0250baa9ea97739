import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EndCode, RouteParts } from './response-writer.ts';
import { OVERLOADED } from './slow-readers.ts';
import { refuse, STREAM_HEADERS } from './sse/sse-refusal.ts';

interface Limit {
  /** Streams that may be open. For safety. */
  readonly most: number;
  readonly message: string;
  readonly hint: string;
}

/** The open streams of one kind. */
export function createOpenStreams({ clock, waiting }: Pick<RouteParts, 'clock' | 'waiting'>, limit: Limit) {
  const { most, message, hint } = limit;
  /** The end of each stream, by the controller that ends it. */
  const open = new Map<AbortController, Promise<unknown>>();
  let stopping = false;

  return {
    count: (): number => open.size,
    /** Refuses a stream if it may not be opened now. @returns null if it may */
    refusal: (request: FastifyRequest, reply: FastifyReply): FastifyReply | null => {
      if (waiting.isFull()) return refuse(request, reply, clock, OVERLOADED);
      if (open.size < most) return null;
      const headers = { 'retry-after': '10' };
      return refuse(request, reply, clock, { code: 'TOO_MANY_STREAMS', message, hint, headers });
    },
    /**
     * Opens a stream, and sends its headers.
     * @param write writes the stream until `ending` aborts, which it already has if catchword stops
     * @returns what `write` returns, when the stream is not open any more
     */
    begin: <T>(
      reply: FastifyReply,
      write: (response: ServerResponse, ending: AbortController) => Promise<T>,
    ): Promise<T> => {
      const { raw } = reply.headers(STREAM_HEADERS).hijack();
      raw.writeHead(200, reply.getHeaders() as Record<string, string>);
      // `createWriter` ends a reader that takes too little; a silent one may wait for changes.
      raw.socket?.setTimeout(0);
      const ending = new AbortController();
      if (stopping) ending.abort('SHUTDOWN' satisfies EndCode);
      const done = write(raw, ending).finally(() => open.delete(ending));
      open.set(ending, done);
      return done;
    },
    /** Ends all streams, later ones too. It resolves when their readers took the last message, or are gone. */
    stop: async (): Promise<void> => {
      stopping = true;
      for (const ending of open.keys()) ending.abort('SHUTDOWN' satisfies EndCode);
      await Promise.all(open.values());
    },
  };
}
