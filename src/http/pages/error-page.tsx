import type { FastifyReply } from 'fastify';
import type { HttpError } from '../http-error.ts';
import { sendPage } from './layout.tsx';
import { sentence } from './untrusted-text.tsx';

const TITLES: Partial<Record<HttpError['code'], string>> = {
  USAGE: 'This request is not valid',
  UNAUTHORIZED: 'You are signed out',
  NOT_FOUND: 'Not found',
  TOO_MANY_WRONG_TOKENS: 'Too many wrong tokens',
  INTERNAL: 'Something went wrong',
  STOPPING: 'catchword is stopping',
};

/** The hint for a person, who needs another one than a program. */
function hintOf({ code, hint }: HttpError, isUnknownPath: boolean): string {
  if (isUnknownPath) return 'Choose a page above.';
  return code === 'UNAUTHORIZED' ? 'Nothing was done. Sign in, then repeat it.' : hint;
}

/** A sentence in which the addresses of pages are links. */
function Linked({ text }: { readonly text: string }) {
  const parts = text.split(/(?<![\w/])(\/(?:runs|products|changes|sinks|actions))\b/);
  return <>{parts.map((part, at) => (at % 2 === 0 ? part : <a href={part}>{part}</a>))}</>;
}

/** Sends an error to a person, with the status that was set. */
export function sendErrorPage(reply: FastifyReply, error: HttpError): FastifyReply {
  const { code, message } = error;
  const content = (
    <>
      <p>{sentence(code === 'UNAUTHORIZED' ? 'your session is over, or you have signed out' : message)}</p>
      <p>
        <Linked text={sentence(hintOf(error, reply.request.is404))} />
      </p>
      <p>{code === 'UNAUTHORIZED' ? <a href="/login">Sign in</a> : <a href="/">Go to the overview</a>}</p>
    </>
  );
  return sendPage(reply, { title: TITLES[code] ?? 'Not possible', sections: [{ id: 'error', content }] });
}
