import { isWritable, writeXml } from '../xml/write.ts';

/**
 * The first characters of a text, with `[secret]` in place of every secret that begins among them. None is shown in part
 * because the text ends there.
 * @param maxLength characters; default: all
 */
export type Hide = (text: string, maxLength?: number) => string;

/** Characters. For comfort: where no secret begins like this, no whole one is looked for. */
const MAX_START = 8;

/** A secret in the forms in which a service could repeat it: as it is, or as it stands in XML or JSON inside of a text. */
function formsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const written = isWritable(secret) ? writeXml({ name: 's', content: secret }) : '';
  const xml = /<s>(.*)<\/s>$/s.exec(written)?.[1] ?? secret;
  return [secret, xml, json];
}

/** Whole secrets are looked up, never compared one by one: ten thousand may begin alike. */
interface Index {
  readonly forms: ReadonlySet<string>;
  readonly startLength: number;
  /** Of each start, the lengths of the forms that begin so, the longest first: one may begin with another. */
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

/** @returns the longest secret that begins at `at`; undefined where none does */
function secretAt({ forms, startLength, lengths }: Index, text: string, at: number): string | undefined {
  for (const length of lengths.get(text.slice(at, at + startLength)) ?? []) {
    const part = text.slice(at, at + length);
    if (forms.has(part)) return part;
  }
  return undefined;
}

/** @param secrets are looked at when something is hidden, not before; empty ones are none */
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
