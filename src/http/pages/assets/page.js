// Follows the live sections of the page. Without this script the page shows the state of the moment it was loaded.

// A module, as every script of our own: its names are not global. Libraries are global.
const { Idiomorph } = /** @type {any} */ (window);
const connection = /** @type {HTMLElement | null} */ (document.querySelector('#connection'));
const ownTime = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' });
const zoneName = new Intl.DateTimeFormat('en', { timeZoneName: 'short' });
const localTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/** How long to wait after the server has refused the stream, milliseconds. */
const RETRY_MS = 5_000;

/** How often the open problems are counted, milliseconds: browsers let a tab that is not seen do no more. */
const COUNT_MS = 60_000;

/** A time of the page in the reader's own zone; its form is that of the page. @param {Date} date */
const inOwnZone = (date) => `${ownTime.format(date)} ${ownZone(date)}`;

/** The name of the reader's zone at that time. @param {Date} date */
const ownZone = (date) => zoneName.formatToParts(date).find(({ type }) => type === 'timeZoneName')?.value ?? '';

const ZONE = 'catchword-own-zone';
/** What the page says in UTC, while it is shown in the reader's zone. @type {WeakMap<HTMLTimeElement, string>} */
const inUtc = new WeakMap();

/**
 * Tells the time of the reader's own zone as the tip of each time, or in its place; the page itself shows UTC.
 * @param {ParentNode} element
 */
function explainTimes(element) {
  const isOwn = zone.getAttribute('aria-pressed') === 'true';
  for (const time of element.querySelectorAll('time')) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    time.title = localTime.format(date);
    const text = time.textContent ?? '';
    if (isOwn && text.endsWith(' UTC')) {
      inUtc.set(time, text);
      time.textContent = inOwnZone(date);
    } else if (!isOwn && inUtc.has(time)) {
      time.textContent = inUtc.get(time) ?? '';
      inUtc.delete(time);
    }
  }
}

/** Remembers the choice, if the browser lets this page store anything. @param {string} [choice] @returns what is stored */
function zoneChoice(choice) {
  try {
    if (choice !== undefined) localStorage.setItem(ZONE, choice);
    return localStorage.getItem(ZONE);
  } catch {
    return null;
  }
}

/** A button that shows times in the reader's zone; without this script the page has none. */
const zone = document.createElement('button');
zone.type = 'button';
zone.className = 'zone';
zone.textContent = 'Times in my zone';
zone.setAttribute('aria-pressed', String(zoneChoice() === 'own'));
zone.addEventListener('click', () => {
  const isOwn = zone.getAttribute('aria-pressed') !== 'true';
  zone.setAttribute('aria-pressed', String(isOwn));
  zoneChoice(isOwn ? 'own' : 'utc');
  explainTimes(document);
});
connection?.after(zone);

/** @param {Element} element */
function announce(element) {
  explainTimes(element);
  document.dispatchEvent(new CustomEvent('sectionchange', { detail: element }));
}

/**
 * What the reader has opened stays open, and what this script has set stays.
 * @param {string} name @param {Element} element
 */
function mayUpdate(name, element) {
  return name !== 'open' && !(name === 'title' && element.localName === 'time');
}

/** What a script has drawn stays, because the script draws it again; and what the reader has ticked, chosen or typed. */
const KEPT = '[data-drawn], input:not([type="hidden"]), select, textarea';

/** @param {Node} node */
function mayMorph(node) {
  return !(node instanceof HTMLElement && node.matches(KEPT));
}

/** Sections that wait until the reader no longer selects text in them. @type {Map<string, string>} */
const waiting = new Map();

/** @param {Element} element */
function isSelected(element) {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
}

/** @param {string} id @param {string} html */
function update(id, html) {
  const element = document.getElementById(id);
  if (element === null) return;
  if (isSelected(element)) {
    waiting.set(id, html);
    return;
  }
  waiting.delete(id);
  const callbacks = { beforeAttributeUpdated: mayUpdate, beforeNodeMorphed: mayMorph };
  Idiomorph.morph(element, html, { morphStyle: 'innerHTML', callbacks });
  announce(element);
}

/** @param {'live' | 'lost'} state @param {string} text */
function say(state, text) {
  if (connection === null || connection.textContent === text) return;
  connection.dataset.state = state;
  connection.textContent = text;
}

/** Says why the server refused the stream. @returns whether to try again */
async function explainRefusal() {
  const { type, status } = await fetch(location.href, { method: 'HEAD', redirect: 'manual' });
  const isSignedOut = type === 'opaqueredirect' || status === 401;
  say('lost', isSignedOut ? 'signed out; reload this page to sign in' : 'not live; reload this page to see the newest');
  return !isSignedOut;
}

/** @param {string} address */
function follow(address) {
  /** @type {EventSource | undefined} */
  let source;
  /** @type {number | undefined} */
  let timer;
  let isOver = false;

  function open() {
    if (source !== undefined || isOver || document.hidden) return;
    const opened = new EventSource(address);
    source = opened;
    opened.addEventListener('open', () => say('live', 'live'));
    opened.addEventListener('section', ({ data }) => {
      const { id, html } = JSON.parse(data);
      update(id, html);
    });
    opened.addEventListener('end', ({ data }) => {
      const { code } = JSON.parse(data);
      if (code !== 'NOT_FOUND') return;
      isOver = true;
      close();
      say('lost', 'this page does not exist any more');
    });
    opened.addEventListener('error', () => {
      say('lost', 'not connected; this page may be out of date');
      // A browser connects again by itself, but not after a status that is an error.
      if (opened.readyState === EventSource.CLOSED) void reopen();
    });
  }

  function close() {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  }

  async function reopen() {
    close();
    const again = await explainRefusal().catch(() => true);
    if (again && source === undefined) timer = window.setTimeout(open, RETRY_MS);
  }

  // A page that is not seen costs the server nothing.
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()));
  window.addEventListener('pagehide', close);
  window.addEventListener('pageshow', open);
  open();
}

/** The title without the number of open problems before it: that of a product may begin with a number, too. */
const title = `${document.querySelector('h1')?.textContent} – catchword`;

/** Puts the number of open problems before the title, also in a tab that is not seen. */
async function countProblems() {
  // A page without links to others is that of the sign-in, which may not ask.
  const home = /** @type {HTMLAnchorElement | null} */ (document.querySelector('header nav a'));
  const answer = home && (await fetch(new URL('api/status', home.href)));
  if (!answer?.ok) return;
  const { problems } = await answer.json();
  document.title = `${problems.length === 0 ? '' : `(${problems.length}) `}${title}`;
}

setInterval(() => void countProblems().catch(() => {}), COUNT_MS);
document.addEventListener('selectionchange', () => {
  for (const [id, html] of waiting) update(id, html);
});
// Scripts that draw listen for `sectionchange`, and draw what the section's `data-` attributes say.
window.addEventListener('DOMContentLoaded', () => document.querySelectorAll('main section').forEach(announce));
if (document.body.dataset.live !== undefined) follow(document.body.dataset.live);
