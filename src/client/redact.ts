import { isWritable, writeXml } from '../xml/write.ts';

/**
 * Replaces every secret in a text by `[secret]`, and cuts the text without showing a part of a secret.
 * @param maxLength characters of the text; default: all
 */
export type Hide = (text: string, maxLength?: number) => string;

/** Characters of the start of a secret, which is looked up first to save time. */
const MAX_START = 8;

/** The forms in which a service could repeat a secret: as it is, or escaped for XML or JSON. */
function formsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const written = isWritable(secret) ? writeXml({ name: 's', content: secret }) : '';
  const xml = /<s>(.*)<\/s>$/s.exec(written)?.[1] ?? secret;
  return [secret, xml, json];
}

/** An index of whole secrets: comparing each of ten thousand with the same start would be slow. */
interface Index {
  readonly forms: ReadonlySet<string>;
  readonly startLength: number;
  /** The lengths of the forms with each start, the longest first, since one may be the start of another. */
  readonly lengths: ReadonlyMap<string, ReadonlySet<number>>;
}

function indexOf(secrets: Iterable<string>): Index {
  const forms = new Set([...secrets].filter((secret) => secret !== '').flatMap(formsOf));
  const longestFirst = [...forms].sort((one, other) => other.length - one.length);
  const startLength = Math.min(MAX_START, longestFirst.at(-1)?.length ?? MAX_START);
  const lengths = new Map<string, Set<number>>();
  for (const form of longestFirst) {
    const start = form.slice(0, startLength);
    lengths.set(start, (lengths.get(start) ?? new Set()).add(form.length));
  }
  return { forms, startLength, lengths };
}

/** @returns the longest secret at this position, or undefined */
function secretAt({ forms, startLength, lengths }: Index, text: string, at: number): string | undefined {
  for (const length of lengths.get(text.slice(at, at + startLength)) ?? []) {
    const part = text.slice(at, at + length);
    if (forms.has(part)) return part;
  }
  return undefined;
}

/** @param secrets called when the first text is redacted; empty secrets are ignored */
export function hiding(secrets: () => Iterable<string>): Hide {
  let index: Index | undefined;
  return (text, maxLength = text.length) => {
    index ??= indexOf(secrets());
    let shown = '';
    let from = 0;
    for (let at = 0; at < maxLength && at < text.length; ) {
      const secret = secretAt(index, text, at);
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
