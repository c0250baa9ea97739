import { render } from 'preact-render-to-string';
import { assetPath } from './page-assets.ts';
import type { Content, Section } from './page-view.ts';
import type { Session } from './session.ts';

const NAVIGATION = [
  ['/', 'Overview'],
  ['/runs', 'Runs'],
  ['/products', 'Products'],
  ['/changes', 'Changes'],
  ['/sinks', 'Sinks'],
  ['/actions', 'Decisions'],
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

/**
 * The whole document. Everything that it shows is escaped by preact; no part of it uses `dangerouslySetInnerHTML`.
 * @param path where the browser is, for the navigation
 * @param live address of the stream of its live sections
 * @param session of the browser; null if no token is set
 */
export function documentHtml(
  { title, sections, draws = false }: Content,
  path: string,
  live: string,
  session: Session | null | 'signed out' = null,
): string {
  const isLive = sections.some((section) => section.live);
  return `<!doctype html>${render(
    <html lang="en">
      <head>
        <meta charSet="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} – catchword`}</title>
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
