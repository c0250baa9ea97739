import { usageError } from '@catchword/base/errors';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import { HTTP_ERRORS, type HttpError } from '../http-error.ts';
import type { TokenCheck } from '../token-check.ts';
import { sendPage } from './layout.tsx';
import type { Sessions } from './session.ts';

export const LOGIN_PATH = '/login';
export const LOGOUT_PATH = '/logout';

const FORM = z.object({ token: z.string(), name: z.string().default(''), back: z.string().default('/') });
type Form = z.infer<typeof FORM>;

/** The path to which a browser returns after the login; never an address of another server. */
function localPath(given: unknown): string {
  const base = 'http://local.invalid';
  if (typeof given !== 'string' || !given.startsWith('/') || !URL.canParse(given, base)) return '/';
  const { origin, pathname, search } = new URL(given, base);
  const isPage = origin === base && !pathname.startsWith('//') && !/^\/(?:login|logout|live)(?:\/|$)/.test(pathname);
  return isPage ? `${pathname}${search}` : '/';
}

/** The login form's address; the browser returns to where it was. */
export function loginPath({ url }: FastifyRequest): string {
  const back = localPath(url);
  return back === '/' ? LOGIN_PATH : `${LOGIN_PATH}?${new URLSearchParams({ back })}`;
}

function LoginForm({ name, back, error }: Omit<Form, 'token'> & { readonly error: HttpError | null }) {
  return (
    <form method="post" action={LOGIN_PATH} class="login">
      {error !== null && (
        <p role="alert" class="bad">
          {error.code === 'UNAUTHORIZED' ? 'This token is wrong. Copy it again.' : `${error.message}. ${error.hint}`}
        </p>
      )}
      <input type="hidden" name="back" value={back} />
      <p>
        <label for="token">Token</label>
        <input
          id="token"
          name="token"
          type="password"
          autocomplete="current-password"
          required
          aria-describedby="token-help"
        />
        <small id="token-help">The value of CATCHWORD_HTTP_TOKEN. Ask the person who set catchword up.</small>
      </p>
      <p>
        <label for="name">Your name (optional)</label>
        <input id="name" name="name" value={name} maxLength={60} autocomplete="name" aria-describedby="name-help" />
        <small id="name-help">It is recorded with what you decide.</small>
      </p>
      <button type="submit">Sign in</button>
    </form>
  );
}

function sendForm(reply: FastifyReply, form: Omit<Form, 'token'>, error: HttpError | null): FastifyReply {
  const content = <LoginForm {...form} error={error} />;
  return sendPage(reply, { title: 'Sign in', sections: [{ id: 'login', content }] }, '', 'signed out');
}

/** Adds the form that trades the token for a session, and the way out. @param signOut ends the session of a request */
export function addLogin(
  app: FastifyInstance,
  check: TokenCheck,
  sessions: Sessions,
  signOut: (request: FastifyRequest, reply: FastifyReply) => void,
): void {
  app.get<{ Querystring: { back?: unknown } }>(LOGIN_PATH, async (request, reply) => {
    const back = localPath(request.query.back);
    if (request.session !== null) return reply.redirect(back, 303);
    // A link of another site led here, so the browser withheld the cookie. It sends the cookie if this page asks again.
    if (request.headers['sec-fetch-site'] === 'cross-site') reply.header('refresh', '0');
    return sendForm(reply, { name: '', back }, null);
  });

  app.post(LOGIN_PATH, { config: { action: true }, bodyLimit: 16_384 }, async (request, reply) => {
    const { data: form } = FORM.safeParse(request.body);
    if (form === undefined) throw usageError('the form is not complete', `Fill it in at ${LOGIN_PATH}.`);
    const { token, name, back } = form;
    const error = check(token, request.ip);
    if (error !== null)
      return sendForm(reply.code(HTTP_ERRORS[error.code][0]).headers(error.headers ?? {}), { name, back }, error);
    sessions.begin(request, reply, name);
    return reply.redirect(localPath(back), 303);
  });

  app.post(LOGOUT_PATH, { config: { action: true } }, async (request, reply) => {
    signOut(request, reply);
    return reply.redirect(LOGIN_PATH, 303);
  });
}
