import { isWritable, writeXml } from '../xml/write.ts';

/**
 * Replaces every secret in a text by `[secret]`, and cuts the text without showing a part of a secret.
 * @param maxLength characters of the text; default: all
 */
export type Hide = (text: string, maxLength?: number) => string;

/** The forms in which a service could repeat a secret: as it is, or escaped for XML or JSON. */
function formsOf(secret: string): string[] {
  const xml = isWritable(secret) ? writeXml({ name: 's', content: secret }) : '';
  return [secret, /<s>(.*)<\/s>$/s.exec(xml)?.[1] ?? secret, JSON.stringify(secret).slice(1, -1)];
}

/** Matches the longest secret first, since one may be the start of another. */
function patternOf(secrets: Iterable<string>): RegExp {
  const forms = [...new Set([...secrets].filter((secret) => secret !== '').flatMap(formsOf))];
  // Sorted by text, those with the same start are neighbours, which makes the pattern fast.
  forms.sort((one, other) => (one < other ? 1 : -1));
  const escaped = forms.map((form) => form.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(escaped.join('|') || '(?!)', 'g');
}

/** @param secrets called when the first text is redacted; empty secrets are ignored */
export function hiding(secrets: () => Iterable<string>): Hide {
  let pattern: RegExp | undefined;
  return (text, maxLength = text.length) => {
    pattern ??= patternOf(secrets());
    let shown = '';
    let from = 0;
    for (const { 0: secret, index } of text.matchAll(pattern)) {
      if (index >= maxLength) break;
      shown += `${text.slice(from, index)}[secret]`;
      from = index + secret.length;
    }
    return from < maxLength ? shown + text.slice(from, maxLength) : shown;
  };
}
