/**
 * A sink for Meilisearch: a document for each product. Configure it with
 *
 *   CATCHWORD_SINK_SEARCH='module:examples/meilisearch-sink.mjs?url=http://127.0.0.1:7700&index=products'
 *   CATCHWORD_SINK_SEARCH_SECRET=an API key that may add, get and delete documents, and create and get indexes and tasks
 *     (to try it with sink contract: and delete indexes)
 *
 * A document has a member more than its product: `catchword_id`, its primary key. Meilisearch
 * answers before it has stored anything, so each task is awaited. The position is a document of the index
 * `<index>_position`. Meilisearch cannot compare positions: feed an index from one mirror only.
 */
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { SinkError } from 'catchword/sink';

const KEY = 'catchword_id';
const PARKABLE = [400, 413];

/** Begins the key of a document whose id is not that of its product, such as a copy. No product's key has a tab. */
const FOREIGN = '\t';
const keyOf = (id, { vbid }) => (idOf(String(vbid)) === id ? String(vbid) : `${FOREIGN}${id}`);

/** Writes each byte that an id may not have as `_` and two digits. An id has at most 511 bytes. */
function idOf(vbid) {
  if (vbid.startsWith(FOREIGN)) return vbid.slice(FOREIGN.length);
  const escaped = (byte) => `_${byte.charCodeAt(0).toString(16).padStart(2, '0')}`;
  const id = Buffer.from(vbid)
    .toString('latin1')
    .replace(/[^A-Za-z0-9-]/g, escaped);
  return id.length <= 500 ? id : `__${createHash('sha256').update(vbid).digest('hex')}`;
}

/** The digest of a product as JSON, whatever the order of its members. */
function digestOf(product) {
  const sorted = (_, value) =>
    value instanceof Object && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return createHash('md5').update(JSON.stringify(product, sorted)).digest('hex').slice(0, 15);
}

/** @type {import('catchword/sink').SinkFactory} */
export function createSink({ url: { searchParams }, secret = '' }) {
  const base = (searchParams.get('url') ?? '').replace(/\/$/, '');
  const index = searchParams.get('index') ?? 'products';
  if (!/^https?:\/\/[^@/]+$/.test(base)) throw new Error('Use url=https://HOST:PORT, without user and password');
  const documents = `indexes/${index}/documents`;
  const positions = `indexes/${index}_position/documents`;
  let stored = null;

  async function call(signal, method, path, value, { absent = false, refusing = [] } = {}) {
    const body = value === undefined ? undefined : JSON.stringify(value);
    const headers = {
      ...(secret && { authorization: `Bearer ${secret}` }),
      ...(body && { 'content-type': 'application/json' }),
    };
    try {
      const response = await fetch(`${base}/${path}`, { method, headers, body, signal, redirect: 'manual' });
      const { status } = response;
      if (response.ok) return await response.json();
      const { code = 'no code' } = await response.json().catch(() => ({}));
      if (absent && status === 404 && /^(index|document)_not_found$/.test(code)) return null;
      const isPassing = status === 408 || status === 429 || status >= 500;
      const kind = refusing.includes(status) ? 'refused' : isPassing ? 'unavailable' : 'misconfigured';
      throw new SinkError(kind, `Meilisearch answered ${status} (${code})`, { timedOut: status === 504 });
    } catch (error) {
      if (error instanceof SinkError) throw error;
      throw new SinkError('unavailable', `Meilisearch cannot be reached (${error.cause?.code ?? error.name})`);
    }
  }

  /** Waits for the task that a request has queued. */
  async function perform(signal, method, path, value, refusing = []) {
    const { taskUid } = await call(signal, method, path, value, { refusing });
    for (let waitMs = 10; ; waitMs = Math.min(waitMs * 2, 1_000)) {
      const { status, error } = await call(signal, 'GET', `tasks/${taskUid}`);
      if (status === 'succeeded') return;
      if (status === 'failed' || status === 'canceled') {
        const isOfDocument = refusing.length > 0 && error?.type === 'invalid_request' && !/^index_/.test(error.code);
        const kind = isOfDocument ? 'refused' : /^index_/.test(error?.code) ? 'misconfigured' : 'unavailable';
        throw new SinkError(kind, `task ${taskUid} of Meilisearch ${status} (${error?.code ?? 'no code'})`);
      }
      await pause(waitMs, undefined, { signal });
    }
  }

  async function save(position, signal) {
    await perform(signal, 'POST', `${positions}?primaryKey=${KEY}`, [{ [KEY]: 'position', ...position }]);
    stored = position;
  }

  async function remove(ids, signal) {
    if (ids.length > 0) await perform(signal, 'POST', `${documents}/delete-batch`, ids);
  }

  const readPosition = (signal) => call(signal, 'GET', `${positions}/position`, undefined, { absent: true });
  const readIndex = (signal) => call(signal, 'GET', `indexes/${index}`, undefined, { absent: true });

  return {
    batch: { events: 2_000, chars: 4_000_000 },

    async open(mark, _newest, signal) {
      if ((await readIndex(signal)) === null) await perform(signal, 'POST', 'indexes', { uid: index, primaryKey: KEY });
      const { createdAt, primaryKey } = await readIndex(signal);
      if (primaryKey !== KEY)
        throw new SinkError('misconfigured', `${index} has another primary key than ${KEY}: use an index of its own`);
      const { [KEY]: _, ...found } = (await readPosition(signal)) ?? {};
      stored = found.incarnation === undefined ? null : found;
      const { createdAt: known, ...position } = found;
      if (known === createdAt) return position;
      const { numberOfDocuments } = await call(signal, 'GET', `indexes/${index}/stats`);
      if (stored === null && numberOfDocuments > 0)
        throw new SinkError('misconfigured', `${index} has documents, but no position in ${index}_position: empty it`);
      const start = { ...(numberOfDocuments > 0 ? position : mark), cursor: 0, at: 0, late: 0 };
      await save({ ...start, createdAt }, signal);
      return mark.cursor > 0 ? { ...start, refill: `${index} is a new index` } : start;
    },

    async deliver(events, mark, signal) {
      const newest = [...new Map(events.map((event) => [event.vbid, event])).values()];
      const living = newest.filter(({ body }) => body !== null);
      const added = living.map(({ vbid, body }) => ({ ...JSON.parse(body), [KEY]: idOf(vbid) }));
      if (added.length > 0) await perform(signal, 'POST', documents, added, PARKABLE);
      const gone = newest.filter(({ body }) => body === null);
      await remove(
        gone.map(({ vbid }) => idOf(vbid)),
        signal,
      );
      await save({ ...stored, ...mark }, signal);
    },

    digests: { digestOf: ({ body }) => digestOf(JSON.parse(body)) },

    async *list(_listing, _buckets, mark, signal) {
      for (let offset = 0, total = 1; offset < total; offset += 1_000) {
        const page = await call(signal, 'GET', `${documents}?limit=1000&offset=${offset}`);
        yield page.results.map(({ [KEY]: id, ...product }) => ({
          vbid: keyOf(String(id), product),
          digest: digestOf(product),
        }));
        total = page.total;
      }
      const { generation, cursor } = (await readPosition(signal)) ?? {};
      if (generation !== mark.generation || cursor !== mark.cursor)
        throw new SinkError('unavailable', `another process has moved the position of ${index}`);
    },

    async apply(events, extra, mark, signal) {
      await this.deliver([...events, ...extra.map((vbid) => ({ vbid, body: null }))], mark, signal);
    },

    async drop(signal) {
      for (const uid of [index, `${index}_position`]) {
        const found = await call(signal, 'GET', `indexes/${uid}`, undefined, { absent: true });
        if (found !== null) await perform(signal, 'DELETE', `indexes/${uid}`);
      }
      return '';
    },

    async recheck(signal) {
      const found = await readIndex(signal);
      if (found?.createdAt !== stored.createdAt) throw new SinkError('unavailable', `${index} is a new index`);
    },

    async close() {},

    async check(signal, found) {
      const position = await readPosition(signal);
      if (position !== null) found?.(position);
      const state = (await readIndex(signal)) === null ? 'will be created' : 'exists';
      return `${index} ${state}; the right to write was not checked`;
    },
  };
}
