/**
 * A sink for OpenSearch and Elasticsearch: a document for each product. Create the index, then configure
 *
 *   CATCHWORD_SINK_SEARCH='module:examples/opensearch-sink.mjs?url=https://search.example:9200&index=products'
 *   CATCHWORD_SINK_SEARCH_SECRET=user:password, or an API key of Elasticsearch
 *
 * A document's version is made of the generation of delivery and the number of the change: the engine itself refuses what
 * is older. The position is a document of the index `<index>-position`, which only one relay at a time can move.
 */
import { createHash } from 'node:crypto';
import { SinkError } from 'catchword/sink';

/** An engine takes ids of at most 512 bytes. */
const idOf = (vbid) =>
  Buffer.byteLength(vbid) <= 512 ? vbid : `sha256:${createHash('sha256').update(vbid).digest('hex')}`;

/** A document whose id is not that of its product, such as a copy, is that of the product which has its id as the key. */
const keyOf = ({ _id, _source: { vbid } }) => (idOf(String(vbid)) === _id ? String(vbid) : _id);

/** A BigInt, because a number has 53 bits. Each edit of a document by somebody else adds 1: there is room for 255. */
const versionOf = (generation, seq) => (BigInt(generation) << 44n) + (BigInt(seq) << 8n);
const action = (name, id, version) =>
  `{"${name}":{"_id":${JSON.stringify(id)},"version":${version},"version_type":"external"}}`;

/** @param refusing the statuses that mean that a document can never be stored */
function failure(status, error, refusing) {
  // The engine may quote a value of the document.
  const reason = `${error?.type ?? 'no reason'}: ${error?.reason ?? ''}`.split(' Preview of')[0].slice(0, 300);
  const isPassing = [408, 409, 429].includes(status) || status >= 500;
  const kind = refusing.includes(status) ? 'refused' : isPassing ? 'unavailable' : 'misconfigured';
  return new SinkError(kind, `the engine answered ${status} (${reason})`, { timedOut: status === 504 });
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
  const [base, index = 'products', refresh = 'false'] = ['url', 'index', 'refresh'].map((name) =>
    searchParams.get(name)?.replace(/\/$/, ''),
  );
  if (!/^https?:\/\/[^@/]+$/.test(base)) throw new Error('Use url=https://HOST:PORT, without user and password');
  const scheme = secret.includes(':') ? `Basic ${Buffer.from(secret).toString('base64')}` : `ApiKey ${secret}`;
  const place = `${index}-position/_doc/position`;
  /** The document of the position, with the numbers that the engine gave to it. */
  let stored = null;

  async function call(signal, method, path, body, { type = 'application/json', accept = [], refusing = [] } = {}) {
    const headers = { ...(secret && { authorization: scheme }), ...(body && { 'content-type': type }) };
    try {
      const response = await fetch(`${base}/${path}`, { method, headers, body, signal, redirect: 'manual' });
      if (response.ok || accept.includes(response.status)) return await response.json();
      const { error } = await response.json().catch(() => ({}));
      throw failure(response.status, error, refusing);
    } catch (error) {
      if (error instanceof SinkError) throw error;
      throw new SinkError('unavailable', `the engine cannot be reached (${error.cause?.code ?? error.name})`);
    }
  }

  /** Sends lines. A conflict means that the engine has the same version, or a newer one. */
  async function bulk(lines, signal) {
    const path = `${index}/_bulk?refresh=${refresh}&filter_path=errors,items.*.status,items.*.error`;
    const options = { type: 'application/x-ndjson', refusing: [400, 413] };
    const { items } = await call(signal, 'POST', path, `${lines.join('\n')}\n`, options);
    const failed = items.flatMap(Object.values).filter(({ status, error }) => error !== undefined && status !== 409);
    const failures = failed.map(({ status, error }) => failure(status, error, [400]));
    // No document is refused while another one may be sent again.
    const first = failures.find((one) => one.failure !== 'refused') ?? failures[0];
    if (first !== undefined) throw first;
  }

  /** Identifies what the name means: an index that was deleted and created is another one. */
  async function identify(signal) {
    const found = await call(signal, 'GET', `${index}/_settings?filter_path=*.settings.index.uuid`);
    return Object.values(found)
      .map(({ settings }) => settings.index.uuid)
      .sort()
      .join();
  }

  /** Reads all documents. */
  async function* scroll(signal) {
    await call(signal, 'POST', `${index}/_refresh`);
    const query = { size: 1_000, _source: true, sort: ['_doc'] };
    let page = await call(signal, 'POST', `${index}/_search?scroll=5m`, JSON.stringify(query));
    while (page.hits.hits.length > 0) {
      yield page.hits.hits;
      const next = { scroll: '5m', scroll_id: page._scroll_id };
      page = await call(signal, 'POST', '_search/scroll', JSON.stringify(next));
    }
  }

  async function save(position, signal) {
    const fence =
      stored === null ? 'op_type=create' : `if_seq_no=${stored._seq_no}&if_primary_term=${stored._primary_term}`;
    stored = { ...(await call(signal, 'PUT', `${place}?${fence}`, JSON.stringify(position))), _source: position };
  }

  return {
    batch: { events: 1_000, chars: 4_000_000 },
    async open(mark, _newest, signal) {
      const uuid = await identify(signal);
      const found = await call(signal, 'GET', place, undefined, { accept: [404] });
      stored = found.found ? found : null;
      const { uuid: known, ...position } = stored?._source ?? { ...mark };
      if (known === uuid) return position;
      const { count } = await call(signal, 'GET', `${index}/_count`);
      if (stored === null && count > 0)
        throw new SinkError('misconfigured', `${index} has documents, but no position in ${index}-position: empty it`);
      const start = { ...(count > 0 ? position : mark), cursor: 0, at: 0, late: 0 };
      await save({ ...start, uuid }, signal);
      return mark.cursor > 0 ? { ...start, refill: `${index} is a new index` } : start;
    },
    async deliver(events, mark, signal) {
      const newest = new Map(events.map((event) => [event.vbid, event]));
      const lines = [...newest.values()].flatMap(({ vbid, seq, body }) => {
        const version = versionOf(mark.generation, seq);
        if (body === null) return action('delete', idOf(vbid), version);
        // A source may write a product on several lines.
        return [action('index', idOf(vbid), version), body.replace(/[\r\n]+/g, ' ')];
      });
      await bulk(lines, signal);
      await save({ ...stored._source, ...mark }, signal);
    },
    digests: { digestOf: ({ body }) => digestOf(JSON.parse(body)) },
    async *list(_listing, _buckets, _mark, signal) {
      for await (const hits of scroll(signal))
        yield hits.map((hit) => ({ vbid: keyOf(hit), digest: digestOf(hit._source) }));
      const { _seq_no } = await call(signal, 'GET', place, undefined, { accept: [404] });
      if (_seq_no !== stored._seq_no)
        throw new SinkError('unavailable', `another process has moved the position of ${index}`);
    },
    /** Without versions of ours, because the engine has the same ones, or newer ones: it adds 1 to what it has. */
    async apply(events, extra, mark, signal) {
      const lines = events.flatMap(({ vbid, body }) => [
        `{"index":{"_id":${JSON.stringify(idOf(vbid))}}}`,
        body.replace(/[\r\n]+/g, ' '),
      ]);
      lines.push(...extra.map((vbid) => `{"delete":{"_id":${JSON.stringify(idOf(vbid))}}}`));
      if (lines.length > 0) await bulk(lines, signal);
      await save({ ...stored._source, ...mark }, signal);
    },
    /** Creates the index again, because the engine remembers the versions of documents that are deleted alone. */
    async drop(signal) {
      const [[name, { aliases, mappings, settings }]] = Object.entries(await call(signal, 'GET', index));
      const { uuid: _, version: __, provided_name: ___, creation_date: ____, ...own } = settings.index;
      await call(signal, 'DELETE', `${index}-position`, undefined, { accept: [404] });
      await call(signal, 'DELETE', name);
      await call(signal, 'PUT', name, JSON.stringify({ aliases, mappings, settings: { index: own } }));
      return `the empty index ${name}`;
    },
    async recheck(signal) {
      if ((await identify(signal)) !== stored._source.uuid)
        throw new SinkError('unavailable', `${index} is a new index`);
    },
    async close() {},
    async check(signal, found) {
      await identify(signal);
      const { _source } = await call(signal, 'GET', place, undefined, { accept: [404] });
      if (_source !== undefined) found?.(_source);
      return `${index} exists; the right to write was not checked`;
    },
  };
}
