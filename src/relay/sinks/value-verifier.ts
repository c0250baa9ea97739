import { canonicalJson } from '../../catalog/content.ts';
import { objectMembers } from '../../catalog/json-text.ts';
import { SinkError, type Verifier } from '../sink.ts';
import { bucketOf, digestOf } from '../store-digest.ts';

/* Verifiers of stores that cannot add by themselves: the relay reads what they have of each product. */

/** What a store has of a product: its JSON. */
export interface StoredValue {
  readonly vbid: string;
  readonly text: string;
}

/** What tells values apart as JSON: not their white space, nor the order of their members. */
function digestOfJson(text: string): string {
  let value = text;
  try {
    JSON.parse(text);
    value = canonicalJson(text);
  } catch {
    // Somebody has written what is not JSON, or is nested too deep for a product.
  }
  return digestOf(value);
}

function isWanted(vbid: string, buckets: ReadonlySet<number> | null): boolean {
  return buckets === null || buckets.has(bucketOf(vbid));
}

const digestOfEvent: Verifier['digestOf'] = ({ body }) => digestOfJson(body ?? '');

/** Compares the values of a store with one for each product. @param read reads all of them */
export function createValueVerifier(
  read: () => AsyncIterable<readonly StoredValue[]>,
  repair: NonNullable<Verifier['repair']>,
): Verifier {
  return {
    compares: { fast: null, deep: 'keys and whole values' },
    digestOf: digestOfEvent,
    products: async function* (_deep, buckets, _mark, signal) {
      for await (const values of read()) {
        signal.throwIfAborted();
        const wanted = values.filter(({ vbid }) => isWanted(vbid, buckets));
        yield wanted.map(({ vbid, text }) => ({ vbid, digest: digestOfJson(text) }));
      }
    },
    repair,
  };
}

/** The product that an event brings, and the digest of its JSON (null: it was removed); null if the text is not an event. */
function productOf(event: string): readonly [vbid: string, digest: string | null] | null {
  try {
    const { type, subject } = JSON.parse(event) as { readonly type?: unknown; readonly subject?: unknown };
    if (!String(type).startsWith('catchword.') || typeof subject !== 'string') return null;
    // The text itself, because numbers must not be rounded.
    const text = objectMembers(objectMembers(event).get('data') ?? '{}').get('product') ?? 'null';
    return [subject, text === 'null' ? null : digestOfJson(text)];
  } catch {
    return null;
  }
}

/**
 * Compares what a reader of all events of a store ends with: each product as its last event says.
 * @param name of the sink
 * @param read reads the texts of all events, oldest first; throws SinkError if the store does not have all of them any more
 */
export function createFoldVerifier(name: string, read: () => AsyncIterable<readonly string[]>): Verifier {
  return {
    compares: { fast: null, deep: 'each product as its last event says' },
    digestOf: digestOfEvent,
    products: async function* (_deep, buckets, _mark, signal) {
      const last = new Map<string, string>();
      for await (const events of read()) {
        signal.throwIfAborted();
        for (const event of events) {
          const [vbid, digest] = productOf(event) ?? [];
          if (vbid === undefined)
            throw new SinkError('misconfigured', `sink ${name} has an entry that is not an event`);
          if (digest == null) last.delete(vbid);
          else if (isWanted(vbid, buckets)) last.set(vbid, digest);
        }
      }
      yield [...last].map(([vbid, digest]) => ({ vbid, digest }));
    },
  };
}

/** The error of a store of events that has dropped old ones. */
export function trimmedError(where: string): SinkError {
  return new SinkError('misconfigured', `${where} no longer has every event, so its products cannot be compared`);
}
