// Follows the live sections of the page. Without this script the page shows the state of the moment it was loaded.

// A module, as every script of our own: its names are not global. Libraries are global.
const { Idiomorph } = /** @type {any} */ (window);
const connection = /** @type {HTMLElement | null} */ (document.querySelector('#connection'));
const localTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/** Why the page is not followed any more, by the code of the stream's last message. @type {Record<string, string>} */
const OVER = {
  NOT_FOUND: 'this page does not exist any more',
  OVER: 'loading the final state',
};

/** How long to wait after the server has refused the stream, milliseconds. */
const RETRY_MS = 5_000;

/** Tells the time of the reader's own zone as the tip of each time; the page itself shows UTC. @param {Element} element */
function explainTimes(element) {
  for (const time of element.querySelectorAll('time')) {
    const date = new Date(time.dateTime);
    if (!Number.isNaN(date.getTime())) time.title = localTime.format(date);
  }
}

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

/** What a script has drawn stays; the script draws it again. @param {Node} node */
function mayMorph(node) {
  return !(node instanceof HTMLElement && node.dataset.drawn !== undefined);
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
  Idiomorph.morph(element, html, { morphStyle: 'innerHTML', ignoreActiveValue: true, callbacks });
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
      const reason = OVER[code];
      if (reason === undefined) return;
      isOver = true;
      close();
      say('lost', reason);
      // Its other sections have changed as well, and there may be more of them.
      if (code === 'OVER') location.reload();
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

document.addEventListener('selectionchange', () => {
  for (const [id, html] of waiting) update(id, html);
});
// Scripts that draw listen for `sectionchange`, and draw what the section's `data-` attributes say.
window.addEventListener('DOMContentLoaded', () => document.querySelectorAll('main section').forEach(announce));
if (document.body.dataset.live !== undefined) follow(document.body.dataset.live);
