import { channel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';

/** A response of a server in this process, as the server sees it. */
export interface Watched {
  readonly url: string;
  readonly response: ServerResponse;
  /** The most bytes that ever waited in this process. */
  readonly mostWaiting: number;
  /** Whether the server gave the connection up because it was silent. */
  readonly timedOut: boolean;
}

/** Watches every response that starts from now on, from the server's side. */
export function watchResponses(): readonly Watched[] {
  const watched: Watched[] = [];
  const onStart = (message: unknown): void => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
    const { socket } = request;
    const seen = { url: request.url ?? '', response, mostWaiting: 0, timedOut: false };
    socket.on('timeout', () => {
      seen.timedOut = true;
    });
    const write = response.write.bind(response) as (...args: unknown[]) => boolean;
    Object.defineProperty(response, 'write', {
      value: (...args: unknown[]): boolean => {
        const room = write(...args);
        seen.mostWaiting = Math.max(seen.mostWaiting, response.writableLength, socket.writableLength);
        return room;
      },
    });
    watched.push(seen);
  };
  const starts = channel('http.server.request.start');
  starts.subscribe(onStart);
  onTestFinished(() => {
    starts.unsubscribe(onStart);
  });
  return watched;
}
