import { randomUUID, scryptSync } from 'node:crypto';
import type { Clock } from '@catchword/base/clock';
import { printable } from '@catchword/base/printable';
import { fastifyCookie, sign, unsign } from '@fastify/cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { prefixOf } from '../path-prefix.ts';

/** Length of a session, milliseconds. */
const LENGTH_MS = 12 * 3_600_000;
/** Characters of an operator's name, which is recorded and shown in one line. */
const MAX_NAME = 60;

/** A browser that gave the right token. */
export interface Session {
  readonly id: string;
  /** As the operator gave it; may be empty. */
  readonly name: string;
  /** Milliseconds since 1970, by the clock of the machine that began it. */
  readonly expiresAt: number;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Null for a request without a session: a bearer token, or no token is set. */
    session: Session | null;
  }
}

/** Whether the browser uses TLS, also where a proxy ends it. A browser that lies about it harms only itself. */
function isSecure({ headers, protocol }: FastifyRequest): boolean {
  const forwarded = /^([^,]*;)?\s*proto="?https\b/i.test(String(headers.forwarded));
  const [first] = String(headers['x-forwarded-proto'] ?? protocol).split(',');
  return forwarded || first?.trim().toLowerCase() === 'https';
}

export type Sessions = ReturnType<typeof createSessions>;

/**
 * Sessions without a store: the cookie holds the session, signed with a key that is derived from the token, slowly, so
 * that who has a cookie cannot guess a weak token. A restart or another process of the mirror keeps them, and another
 * token ends them all. Only the process that a browser signs out of remembers that.
 */
export function createSessions(token: string, clock: Clock) {
  const key = scryptSync(token, 'catchword session', 32);
  // Browsers send cookies to all ports of a host: mirrors with different tokens do not overwrite each other's.
  const cookieName = `catchword_${scryptSync(key, 'catchword cookie', 4).toString('hex')}`;

  /** Sessions that were signed out, with the time when they would have ended: a copy of the cookie is worth nothing. */
  const signedOut = new Map<string, number>();
  /** Milliseconds until a session is over. Far too many if the clock was wrong when it began. */
  const leftMs = ({ expiresAt }: Session): number => expiresAt - clock.now();
  const isOver = (session: Session): boolean => leftMs(session) <= 0 || leftMs(session) > 2 * LENGTH_MS;

  function setCookie(request: FastifyRequest, reply: FastifyReply, value: string, maxAge: number): void {
    const path = prefixOf(request) || '/';
    const cookie = { path, httpOnly: true, sameSite: 'strict', secure: isSecure(request), maxAge } as const;
    reply.header('set-cookie', fastifyCookie.serialize(cookieName, value, cookie));
  }

  return {
    begin: (request: FastifyRequest, reply: FastifyReply, name: string): void => {
      const shown = printable(name).trim().slice(0, MAX_NAME).toWellFormed();
      const session: Session = { id: randomUUID(), name: shown, expiresAt: clock.now() + LENGTH_MS };
      const text = Buffer.from(JSON.stringify(session)).toString('base64url');
      setCookie(request, reply, sign(text, key), LENGTH_MS / 1000);
    },
    end: (request: FastifyRequest, reply: FastifyReply): void => {
      for (const [id, expiresAt] of signedOut) if (expiresAt <= clock.now()) signedOut.delete(id);
      if (request.session !== null) signedOut.set(request.session.id, request.session.expiresAt);
      setCookie(request, reply, '', 0);
    },
    /** The session of the request's cookie; null without one, or if it was not signed with this token or is over. */
    of: ({ headers }: FastifyRequest): Session | null => {
      const given = fastifyCookie.parse(headers.cookie ?? '')[cookieName];
      if (given === undefined) return null;
      const { value } = unsign(given, key);
      if (value === null) return null;
      const session = JSON.parse(Buffer.from(value, 'base64url').toString()) as Session;
      return isOver(session) || signedOut.has(session.id) ? null : session;
    },
    leftMs,
  };
}

/** Names the sender of a request, for the record of decisions: `Anna (127.0.0.1)`, or `127.0.0.1`; or a proxy. */
export function operatorOf({ session, ip }: FastifyRequest): string {
  const address = printable(ip || 'unknown address').replace(/^::ffff:(?=[\d.]+$)/, '');
  return session === null || session.name === '' ? address : `${session.name} (${address})`;
}
