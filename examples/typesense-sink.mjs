/**
 * A sink for Typesense: a document for each product. Create the collection with your fields, then configure
 *
 *   CATCHWORD_SINK_SEARCH='module:examples/typesense-sink.mjs?url=http://127.0.0.1:8108&collection=products'
 *   CATCHWORD_SINK_SEARCH_SECRET=an API key that may read and create collections, and write documents
 *
 * A document has a member more than its product: `id`, which replaces an `id` of the product. The
 * position is a document of the collection `<collection>_position`. Typesense cannot compare positions: feed a collection
 * from one mirror only.
 */
import { createHash } from 'node:crypto';
import { SinkError } from 'catchword/sink';

/** So many ids fit into an address of 8 kB, which proxies accept. */
const IDS = 32;

/** Begins the key of a document whose id is not that of its product, such as a copy. No product's key has a tab. */
const FOREIGN = '\t';
const keyOf = (id, { vbid }) => (idOf(String(vbid)) === id ? String(vbid) : `${FOREIGN}${id}`);

/** Writes each byte that would be encoded in an address as `_` and two digits. */
function idOf(vbid) {
  if (/^\t[\w.-]+$/.test(vbid)) return vbid.slice(FOREIGN.length);
  const escaped = (byte) => `_${byte.charCodeAt(0).toString(16).padStart(2, '0')}`;
  const id = Buffer.from(vbid)
    .toString('latin1')
    .replace(/[^A-Za-z0-9-]/g, escaped);
  return id.length <= 200 ? id : `__${createHash('sha256').update(vbid).digest('hex')}`;
}

/** The error of JSON.parse would quote a document. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new SinkError('unavailable', 'Typesense sent something else than JSON');
  }
}

/** What `sink verify` compares of an exported document. */
function productIn(line) {
  const { id, ...product } = parsed(line);
  return { vbid: keyOf(id, product), digest: digestOf(product) };
}

/** @param ofDocument whether a document, not the request, was rejected */
function failure(status, message, ofDocument) {
  // When its disk or memory is full, Typesense answers 422 to every request that writes.
  const isPassing = [408, 409, 429].includes(status) || status >= 500 || /running out of resource/.test(message);
  const kind = isPassing ? 'unavailable' : ofDocument ? 'refused' : 'misconfigured';
  return new SinkError(kind, `Typesense answered ${status} (${message.slice(0, 200)})`, { timedOut: status === 504 });
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
  const collection = searchParams.get('collection') ?? 'products';
  if (!/^https?:\/\/[^@/]+$/.test(base)) throw new Error('Use url=https://HOST:PORT, without user and password');
  const documents = `collections/${collection}/documents`;
  const positions = `collections/${collection}_position/documents`;
  let stored = null;

  /** @returns the text of the answer, or a stream if it need not be whole; null if what is asked for is absent and may be */
  async function call(signal, method, path, body, options = {}) {
    const { absent = false, type = 'application/json', refusing = [], whole = true } = options;
    const headers = { 'x-typesense-api-key': secret, ...(body && { 'content-type': type }) };
    try {
      const response = await fetch(`${base}/${path}`, { method, headers, body, signal, redirect: 'manual' });
      if (response.ok && !whole) return response.body;
      const text = await response.text();
      if (response.ok) return text;
      if (absent && response.status === 404) return null;
      const message = /"message" *: *"([^"]*)"/.exec(text)?.[1] ?? 'no message';
      throw failure(response.status, message, refusing.includes(response.status));
    } catch (error) {
      if (error instanceof SinkError) throw error;
      throw new SinkError('unavailable', `Typesense cannot be reached (${error.cause?.code ?? error.name})`);
    }
  }

  async function read(signal, path) {
    return parsed((await call(signal, 'GET', path, undefined, { absent: true })) ?? 'null');
  }

  /** Sends documents. The answer is 200 whatever became of them, with a line for each. */
  async function load(values, signal) {
    const lines = values.map((value) => JSON.stringify(value)).join('\n');
    const options = { type: 'text/plain', refusing: [400, 413, 422] };
    const answer = await call(signal, 'POST', `${documents}/import?action=upsert`, lines, options);
    const results = answer.split('\n').map(parsed);
    if (results.length !== values.length) throw failure(502, 'an answer that is not whole');
    const failures = results
      .filter(({ success }) => success !== true)
      .map((one) => failure(one.code ?? 400, String(one.error), true));
    // No document is refused while another one may be sent again.
    const first = failures.find((one) => one.failure !== 'refused') ?? failures[0];
    if (first !== undefined) throw first;
  }

  async function remove(ids, signal) {
    for (let at = 0; at < ids.length; at += IDS) {
      const filter = encodeURIComponent(`id:[${ids.slice(at, at + IDS).join()}]`);
      await call(signal, 'DELETE', `${documents}?filter_by=${filter}`);
    }
  }

  /** Reads the lines of all documents, many at once. */
  async function* exported(signal) {
    const body = await call(signal, 'GET', `${documents}/export`, undefined, { whole: false });
    let rest = '';
    for await (const piece of body.pipeThrough(new TextDecoderStream())) {
      const lines = `${rest}${piece}`.split('\n');
      rest = lines.pop();
      yield lines;
    }
    if (rest !== '') yield [rest];
  }

  async function save(position, signal) {
    const document = JSON.stringify({ id: 'position', ...position });
    await call(signal, 'POST', `${positions}?action=upsert`, document);
    stored = position;
  }

  async function readCollection(signal) {
    const found = await read(signal, `collections/${collection}`);
    if (found !== null) return found;
    throw new SinkError('misconfigured', `Typesense has no collection ${collection}`);
  }

  return {
    batch: { events: 1_000, chars: 4_000_000 },

    async open(mark, _newest, signal) {
      const { created_at: createdAt, num_documents: count } = await readCollection(signal);
      const { id: _, ...found } = (await read(signal, `${positions}/position`)) ?? {};
      stored = found.incarnation === undefined ? null : found;
      const { createdAt: known, ...position } = found;
      if (known === createdAt) return position;
      if (stored === null && count > 0)
        throw new SinkError('misconfigured', `${collection} has documents, but no position: empty it`);
      const schema = { name: `${collection}_position`, fields: [{ name: 'cursor', type: 'int64' }] };
      if ((await read(signal, `collections/${schema.name}`)) === null)
        await call(signal, 'POST', 'collections', JSON.stringify(schema));
      const start = { ...(count > 0 ? position : mark), cursor: 0, at: 0, late: 0 };
      await save({ ...start, createdAt }, signal);
      return mark.cursor > 0 ? { ...start, refill: `${collection} is a new collection` } : start;
    },

    async deliver(events, mark, signal) {
      const newest = [...new Map(events.map((event) => [event.vbid, event])).values()];
      const living = newest.filter(({ body }) => body !== null);
      const added = living.map(({ vbid, body }) => ({ ...JSON.parse(body), id: idOf(vbid) }));
      if (added.length > 0) await load(added, signal);
      const gone = newest.filter(({ body }) => body === null).map(({ vbid }) => idOf(vbid));
      await remove(gone, signal);
      await save({ ...stored, ...mark }, signal);
    },

    digests: { digestOf: ({ body }) => digestOf({ ...JSON.parse(body), id: undefined }) },

    async *list(_listing, _buckets, mark, signal) {
      for await (const lines of exported(signal)) yield lines.map(productIn);
      const { generation, cursor } = (await read(signal, `${positions}/position`)) ?? {};
      if (generation !== mark.generation || cursor !== mark.cursor)
        throw new SinkError('unavailable', `another process has moved the position of ${collection}`);
    },

    async apply(events, extra, mark, signal) {
      await this.deliver([...events, ...extra.map((vbid) => ({ vbid, body: null }))], mark, signal);
    },

    /** Keeps the collection itself, because it has your fields. */
    async drop(signal) {
      for await (const lines of exported(signal))
        await remove(
          lines.map((line) => parsed(line).id),
          signal,
        );
      await call(signal, 'DELETE', `collections/${collection}_position`, undefined, { absent: true });
      return `the empty collection ${collection}`;
    },

    async recheck(signal) {
      const { created_at: createdAt } = await readCollection(signal);
      if (createdAt !== stored.createdAt) throw new SinkError('unavailable', `${collection} is a new collection`);
    },

    async close() {},

    async check(signal, found) {
      await readCollection(signal);
      const position = await read(signal, `${positions}/position`);
      if (position !== null) found?.(position);
      return `${collection} exists; the right to write was not checked`;
    },
  };
}
