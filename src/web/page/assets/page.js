// Follows the live sections of the page. Without this script the page shows the state of the moment it was loaded.

const { Idiomorph } = /** @type {any} */ (window);
const connection = document.querySelector('#connection');

/** What the user has opened stays open. @param {string} name */
const isOwn = (name) => name !== 'open';

/** What a script has drawn stays; the script draws it again. @param {Node} node */
const isDrawn = (node) => !(node instanceof HTMLElement && node.dataset.drawn !== undefined);

/** @param {Element} element */
function announce(element) {
  document.dispatchEvent(new CustomEvent('sectionchange', { detail: element }));
}

/** @param {{ id: string, html: string }} section */
function update({ id, html }) {
  const element = document.getElementById(id);
  if (element === null) return;
  const callbacks = { beforeAttributeUpdated: isOwn, beforeNodeMorphed: isDrawn };
  Idiomorph.morph(element, html, { morphStyle: 'innerHTML', callbacks });
  announce(element);
}

/** @param {string} text */
function say(text) {
  if (connection !== null) connection.textContent = text;
}

/** @param {string} address */
function follow(address) {
  /** @type {EventSource | undefined} */
  let source;
  function open() {
    if (source !== undefined || document.hidden) return;
    source = new EventSource(address);
    source.addEventListener('open', () => say('live'));
    source.addEventListener('error', () => say('not connected; this page may be out of date'));
    source.addEventListener('section', (event) => update(JSON.parse(event.data)));
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
