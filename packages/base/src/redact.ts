/** Characters that the index of secrets looks at first. */
const MAX_START = 8;
/** A shorter secret may be a part of ordinary words, so it is replaced only as a word of its own. */
const MIN_ANYWHERE = 8;
const IN_WORD = /[\p{L}\p{N}_]/u;
const XML_ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Replaces every secret by `[secret]`, and cuts the text to `maxLength` without showing a part of a secret. */
export type Hide = (text: string, maxLength?: number) => string;

/** The forms in which a service could repeat a secret: as it is, or escaped for XML or JSON. */
function formsOf(secret: string): string[] {
  const inXml = secret.replace(/[&<>"]/g, (character) => XML_ESCAPES[character] ?? character);
  return [secret, inXml, JSON.stringify(secret).slice(1, -1)];
}

/** The forms of all secrets by their first characters: comparing each of ten thousand would take seconds. */
function indexOf(secrets: Iterable<string>) {
  const forms = new Set([...secrets].filter((secret) => secret !== '').flatMap(formsOf));
  const longestFirst = [...forms].sort((one, other) => other.length - one.length);
  const startLength = Math.min(MAX_START, longestFirst.at(-1)?.length ?? MAX_START);
  /** For each start, the lengths of its forms, longest first: one may be the start of another. */
  const lengths = new Map<string, Set<number>>();
  for (const form of longestFirst) {
    const start = form.slice(0, startLength);
    lengths.set(start, (lengths.get(start) ?? new Set()).add(form.length));
  }
  return { startLength, lengths, forms };
}

type Index = ReturnType<typeof indexOf>;

/** Whether neither end of a piece of the text is in the middle of a word. */
function isWord(text: string, from: number, to: number): boolean {
  const isCut = (at: number) => IN_WORD.test(text.charAt(at - 1)) && IN_WORD.test(text.charAt(at));
  return !isCut(from) && !isCut(to);
}

/** The length of the longest secret at a place of the text; 0 if there is none. */
function secretLengthAt({ startLength, lengths, forms }: Index, text: string, at: number): number {
  for (const length of lengths.get(text.slice(at, at + startLength)) ?? []) {
    const isSecret = forms.has(text.slice(at, at + length));
    if (isSecret && (length >= MIN_ANYWHERE || isWord(text, at, at + length))) return length;
  }
  return 0;
}

/** @param secrets called when the first text is redacted; empty secrets are ignored */
export function hiding(secrets: () => Iterable<string>): Hide {
  let index: Index | undefined;
  return (text, maxLength = text.length) => {
    index ??= indexOf(secrets());
    const end = Math.min(maxLength, text.length);
    let shown = '';
    let from = 0;
    for (let at = 0; at < end; ) {
      const length = secretLengthAt(index, text, at);
      at += length || 1;
      if (length === 0) continue;
      shown += `${text.slice(from, at - length)}[secret]`;
      from = at;
    }
    return from < end ? shown + text.slice(from, end) : shown;
  };
}

/** Masks what a driver says, before it becomes a part of a sentence of ours. @returns the same error */
export function masked(error: unknown, hide: Hide): unknown {
  return error instanceof Error ? Object.defineProperty(error, 'message', { value: hide(`${error.message}`) }) : error;
}
