import { objectMembers } from '@catchword/catalog/json-text';
import { type Sink, SinkError } from './sink.ts';
import { bucketOf, digestOfJson } from './store-digest.ts';

/** Products that are in memory at once. With more, the events are read several times. */
const MOST_PRODUCTS = 100_000;

/** The product that an event brings, and its JSON (null: it was removed); null if the text is not an event. */
function productOf(event: string): readonly [vbid: string, body: string | null] | null {
  try {
    const { type, subject } = JSON.parse(event) as { readonly type?: unknown; readonly subject?: unknown };
    if (!String(type).startsWith('catchword.') || typeof subject !== 'string') return null;
    // The text itself, because numbers must not be rounded.
    const text = objectMembers(objectMembers(event).get('data') ?? '{}').get('product') ?? 'null';
    return [subject, text === 'null' ? null : text];
  } catch {
    return null;
  }
}

/**
 * Makes `list` of a store of events: it lists what a reader of all events ends with, each product as its last event says.
 * @param name of the sink
 * @param read reads the texts of all events, oldest first; throws SinkError if the store does not have all of them any more
 * @param most products that are in memory at once
 */
export function listFolded(
  name: string,
  read: () => AsyncIterable<readonly string[]>,
  most = MOST_PRODUCTS,
): NonNullable<Sink['list']> {
  return async function* ({ whole }, buckets, _mark, signal) {
    for (let share = 0, shares = 1; share < shares; share++) {
      const last = new Map<string, string>();
      const isWanted = (vbid: string): boolean => {
        const bucket = bucketOf(vbid);
        return bucket % shares === share && (buckets === null || buckets.has(bucket));
      };
      for await (const events of read()) {
        signal.throwIfAborted();
        for (const event of events) {
          const [vbid, body = null] = productOf(event) ?? [];
          if (vbid === undefined)
            throw new SinkError('misconfigured', `sink ${name} has an entry that is not an event`);
          if (body === null) last.delete(vbid);
          else if (isWanted(vbid)) last.set(vbid, whole ? digestOfJson(body) : '');
        }
        // The first walk finds how many walks there are.
        while (share === 0 && last.size > most && shares < most) {
          shares *= 2;
          for (const vbid of last.keys()) if (!isWanted(vbid)) last.delete(vbid);
        }
      }
      yield [...last].map(([vbid, digest]) => ({ vbid, ...(whole && { digest }) }));
    }
  };
}

/** The error of a store of events that has dropped old ones. */
export function trimmedError(where: string): SinkError {
  return new SinkError('misconfigured', `${where} no longer has every event, so its products cannot be compared`);
}
