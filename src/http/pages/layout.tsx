import { gzipSync } from 'node:zlib';
import type { FastifyReply } from 'fastify';
import { render } from 'preact-render-to-string';
import { underPrefix } from '../path-prefix.ts';
import { LIVE_PATH } from '../sse/open-streams.ts';
import { acceptsGzip, assetPath } from './page-assets.ts';
import type { Content, Section } from './page-view.ts';
import type { Session } from './session.ts';

const NAVIGATION = [
  ['/', 'Overview'],
  ['/runs', 'Runs'],
  ['/products', 'Products'],
  ['/changes', 'Changes'],
  ['/sinks', 'Sinks'],
  ['/problems', 'Problems'],
  ['/actions', 'Decisions'],
  ['/system', 'System'],
] as const;

/** A letter, so that the page is found among other tabs. */
const ICON =
  "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><text x='3' y='13' " +
  "font-family='serif' font-style='italic' font-weight='bold' font-size='18' fill='%230b5a8a'>c</text></svg>";

/** Whether a path is a page of the navigation, or a page below it. */
function isAt(href: string, path: string): boolean {
  return path === href || (href !== '/' && path.startsWith(`${href}/`));
}

/** The name of the next page stands at the foot of each, as the catchword of a printed page does. */
function Foot({ path }: { readonly path: string }) {
  const here = NAVIGATION.findIndex(([href]) => isAt(href, path));
  const next = NAVIGATION[here + 1];
  if (here === -1 || next === undefined) return null;
  const [href, name] = next;
  return (
    <footer>
      <a rel="next" href={href}>
        {`${name} →`}
      </a>
    </footer>
  );
}

function Inside({ section: { id, title, content } }: { readonly section: Section }) {
  return (
    <>
      {title !== undefined && <h2 id={`${id}-title`}>{title}</h2>}
      {content}
    </>
  );
}

/** The inside of a section's element, its heading included: a live update replaces it. */
export function sectionHtml(section: Section): string {
  return render(<Inside section={section} />);
}

function SectionElement({ section }: { readonly section: Section }) {
  const { id, title, live = false } = section;
  return (
    <section id={id} data-live={live} aria-labelledby={title === undefined ? undefined : `${id}-title`}>
      <Inside section={section} />
    </section>
  );
}

function SignOut({ name }: { readonly name: string }) {
  return (
    <form method="post" action="/logout" class="session">
      {name !== '' && <span>{`Signed in as ${name}`}</span>}
      <button type="submit">Sign out</button>
    </form>
  );
}

/** The whole document. Everything that it shows is escaped by preact; no part of it uses `dangerouslySetInnerHTML`. */
function documentHtml(
  { title, problems = 0, sections, draws = false }: Content,
  path: string,
  live: string,
  session: Session | null | 'signed out',
): string {
  const isLive = sections.some((section) => section.live);
  return `<!doctype html>${render(
    <html lang="en">
      <head>
        <meta charSet="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${problems === 0 ? '' : `(${problems}) `}${title} – catchword`}</title>
        <link rel="icon" href={ICON} />
        <link rel="stylesheet" href={assetPath('page.css')} />
        <script defer src={assetPath('idiomorph.js')} />
        {draws && <script defer src={assetPath('uplot.js')} />}
        <script type="module" src={assetPath('page.js')} />
        {draws && <script type="module" src={assetPath('runs.js')} />}
      </head>
      <body data-live={isLive ? live : undefined}>
        <a class="skip" href="#main">
          Skip to content
        </a>
        <header>
          <a class="name" href="/">
            catchword
          </a>
          {session !== 'signed out' && (
            <nav aria-label="Pages">
              {NAVIGATION.map(([href, name]) => (
                <a href={href} aria-current={isAt(href, path) ? 'page' : undefined}>
                  {name}
                </a>
              ))}
            </nav>
          )}
          <p id="connection" role="status" />
          {session !== null && session !== 'signed out' && <SignOut name={session.name} />}
        </header>
        <main id="main" tabIndex={-1}>
          <h1>{title}</h1>
          {sections.map((section) => (
            <SectionElement section={section} />
          ))}
        </main>
        <Foot path={path} />
      </body>
    </html>,
  )}`;
}

/** Headers that forbid everything to foreign markup, should any get into a page. HSTS belongs to a proxy, as TLS does. */
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  vary: 'accept-encoding',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  // Forms need it: without a referrer, browsers send `Origin: null`, and /actions could not return to its page.
  'referrer-policy': 'same-origin',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy':
    'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), publickey-credentials-get=(), usb=()',
};

/**
 * Sends a page. Every page goes through here.
 * @param path where the browser is, for the navigation
 * @param session of the browser; null if no token is set
 */
export function sendPage(
  reply: FastifyReply,
  content: Content,
  path = '',
  session: Session | null | 'signed out' = reply.request.session ?? null,
): FastifyReply {
  const { request } = reply;
  const html = underPrefix(request, documentHtml(content, path, LIVE_PATH + request.url, session));
  reply.headers(HEADERS);
  if (!acceptsGzip(request.headers)) return reply.send(html);
  return reply.header('content-encoding', 'gzip').send(gzipSync(html, { level: 4 }));
}
