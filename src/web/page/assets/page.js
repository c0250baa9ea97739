// Follows the live sections of the page. Without this script the page shows the state of the moment it was loaded.

const { Idiomorph } = /** @type {any} */ (window);
const connection = document.querySelector('#connection');

/** What the user has opened stays open. @param {string} name */
const isOwn = (name) => name !== 'open';

/** @param {Element} element */
function announce(element) {
  document.dispatchEvent(new CustomEvent('sectionchange', { detail: element }));
}

/** @param {{ id: string, html: string }} section */
function update({ id, html }) {
  const element = document.getElementById(id);
  if (element === null) return;
  const callbacks = { beforeAttributeUpdated: isOwn };
  Idiomorph.morph(element, html, { morphStyle: 'innerHTML', callbacks });
  announce(element);
}

/** @param {string} text */
function say(text) {
  if (connection !== null) connection.textContent = text;
}

/** Why the page is not followed any more, by the code of the stream's last message. @type {Record<string, string>} */
const OVER = {
  NOT_FOUND: 'this page does not exist any more',
  UNAUTHORIZED: 'signed out; reload this page',
};

/** @param {string} address */
function follow(address) {
  /** @type {EventSource | undefined} */
  let source;
  let isOver = false;
  function open() {
    if (source !== undefined || isOver || document.hidden) return;
    const opened = new EventSource(address);
    source = opened;
    opened.addEventListener('section', (event) => {
      update(JSON.parse(event.data));
      say('live');
    });
    opened.addEventListener('error', () => {
      const isClosed = opened.readyState === EventSource.CLOSED;
      say(`not connected; this page may be out of date${isClosed ? '; reload it' : ''}`);
    });
    opened.addEventListener('end', (event) => {
      const reason = OVER[JSON.parse(event.data).code];
      if (reason === undefined) return;
      isOver = true;
      close();
      say(reason);
    });
  }
  function close() {
    source?.close();
    source = undefined;
  }
  // A page that nobody sees costs the server nothing.
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()));
  window.addEventListener('pagehide', close);
  window.addEventListener('pageshow', open);
  open();
}

// Scripts that draw listen for `sectionchange`, and draw what the section's `data-` attributes say.
window.addEventListener('DOMContentLoaded', () => document.querySelectorAll('main section').forEach(announce));
if (document.body.dataset.live !== undefined) follow(document.body.dataset.live);
