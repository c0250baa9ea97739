import { isWritable, writeXml } from '../xml/write.ts';

/**
 * The first characters of a text, with `[secret]` in place of every secret that begins among them. None is shown in part
 * because the text ends there.
 * @param maxLength characters; default: all
 */
export type Hide = (text: string, maxLength?: number) => string;

/** For safety: comparing starts with as many characters, so that ten thousand secrets cost no more than a few. */
const MAX_START = 8;

/** A secret in the forms in which a service could repeat it: as it is, or as it stands in XML or JSON inside of a text. */
function formsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const written = isWritable(secret) ? writeXml({ name: 's', content: secret }) : '';
  const xml = /<s>(.*)<\/s>$/s.exec(written)?.[1] ?? secret;
  return [secret, xml, json];
}

/** @param secrets are looked at when something is hidden, not before; empty ones are none */
export function hiding(secrets: () => Iterable<string>): Hide {
  let startLength = MAX_START;
  let byStart: Map<string, string[]> | undefined;

  function index(): Map<string, string[]> {
    const forms = [...new Set([...secrets()].filter((secret) => secret !== '').flatMap(formsOf))];
    // The longest first: one may begin with another.
    forms.sort((one, other) => other.length - one.length);
    startLength = Math.min(MAX_START, forms.at(-1)?.length ?? MAX_START);
    const index = new Map<string, string[]>();
    for (const form of forms) {
      const start = form.slice(0, startLength);
      const same = index.get(start);
      if (same === undefined) index.set(start, [form]);
      else same.push(form);
    }
    return index;
  }

  return (text, maxLength = text.length) => {
    byStart ??= index();
    let shown = '';
    let from = 0;
    for (let at = 0; at < maxLength && at < text.length; ) {
      const starts = byStart.get(text.slice(at, at + startLength));
      const place = at;
      const secret = starts?.find((form) => text.startsWith(form, place));
      if (secret === undefined) {
        at++;
        continue;
      }
      shown += `${text.slice(from, at)}[secret]`;
      at += secret.length;
      from = at;
    }
    return from < maxLength ? shown + text.slice(from, maxLength) : shown;
  };
}
