import type { Answer, Asked, Engine } from './engine.ts';

/*
 * A double of OpenSearch and Elasticsearch, as far as examples/opensearch-sink.mjs uses them. Sources: "Bulk API" of both
 * (NDJSON, the final line break, its content type, external versions, ids of at most 512 bytes, a status for each item),
 * "Index API" (if_seq_no, op_type), "Scroll API". Text is the engine's where its documents quote it.
 */

interface Stored {
  /** Null for a deleted document, whose version the engine remembers. */
  source: unknown;
  version: bigint;
  seqNo: number;
}

interface Index {
  readonly uuid: string;
  readonly documents: Map<string, Stored>;
}

const MOST_BYTES = 10_000_000;

/** The parameters of each request; another one is an error. */
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  _bulk: ['refresh', 'filter_path'],
  _settings: ['filter_path'],
  _count: [],
  _refresh: [],
  _search: ['scroll'],
  _doc: ['op_type', 'if_seq_no', 'if_primary_term'],
};

const MAPPINGS = { dynamic: false };

const failed = (status: number, type: string, reason: string): Answer => ({
  status,
  body: { error: { type, reason }, status },
});

const keysBesides = (value: object, known: readonly string[]): string[] =>
  Object.keys(value).filter((key) => !known.includes(key));

/** What a mapping of the field `price` as a number does with a text. */
function unmapped(source: unknown): string | null {
  const { price } = source as { readonly price?: unknown };
  if (typeof price !== 'string') return null;
  return `failed to parse field [price] of type [double]. Preview of field's value: '${price}'`;
}

export function createOpenSearch(secret = 'shop:pass word'): Engine & { readonly renew: (name: string) => void } {
  const indices = new Map<string, Index>();
  const scrolls = new Map<string, { readonly hits: unknown[]; readonly size: number }>();
  let numbers = 0;
  const renew = (name: string): void => {
    indices.set(name, { uuid: `uuid-${++numbers}`, documents: new Map() });
  };
  renew('products');

  /** Applies one action of a bulk. */
  function act(documents: Index['documents'], action: unknown, source: unknown) {
    const [[name, given]] = Object.entries(action as object) as [[string, Record<string, unknown>]];
    const { _id: id, version_type: kind } = given;
    const old = documents.get(String(id));
    // Without a version of its own, a document gets the next one.
    const version = kind === undefined ? (old?.version ?? 0n) + 1n : given.version;
    const result = (status: number, error?: object) => ({ [name]: { _id: id, status, ...(error && { error }) } });
    if (typeof version !== 'bigint' || !['external', undefined].includes(kind as string))
      throw new Error('the test expects external versions');
    if (old !== undefined && old.version >= version) {
      const reason = `[${String(id)}]: version conflict, current version [${old.version}] is higher or equal`;
      return result(409, { type: 'version_conflict_engine_exception', reason });
    }
    const reason = name === 'index' ? unmapped(source) : null;
    if (reason !== null) return result(400, { type: 'document_parsing_exception', reason });
    documents.set(String(id), { source: name === 'delete' ? null : source, version, seqNo: ++numbers });
    if (name === 'delete') return result(old === undefined || old.source === null ? 404 : 200);
    return result(old === undefined ? 201 : 200);
  }

  /** Reads JSON whose versions have 64 bits. */
  function parse(line: string): unknown {
    const versioned = /^(\{"(?:index|delete)":\{"_id":.*,"version":)(\d+)(,"version_type":"\w+"\}\})$/.exec(line);
    if (versioned === null) return JSON.parse(line);
    const [, head, version = '', tail] = versioned;
    return JSON.parse(`${head}"${version}"${tail}`, (key, value) => (key === 'version' ? BigInt(value) : value));
  }

  function bulk({ body, type }: Asked, documents: Index['documents']): Answer {
    if (!['application/x-ndjson', 'application/json'].includes(type))
      return { status: 406, body: { error: `Content-Type header [${type}] is not supported`, status: 406 } };
    const illegal = (reason: string) => failed(400, 'illegal_argument_exception', reason);
    if (!body.endsWith('\n')) return illegal('The bulk request must be terminated by a newline [\\n]');
    const lines = body.slice(0, -1).split('\n');
    const actions: [unknown, unknown][] = [];
    for (let at = 0; at < lines.length; at++) {
      const action = parse(lines[at] ?? '') as Record<string, Record<string, unknown>>;
      const [name = '', ...more] = Object.keys(action);
      const given = action[name] ?? {};
      if (more.length > 0 || !['index', 'delete'].includes(name))
        return illegal(`Malformed action/metadata line [${at}]`);
      const [unknown] = keysBesides(given, ['_id', 'version', 'version_type']);
      if (unknown !== undefined)
        return illegal(`Action/metadata line [${at}] contains an unknown parameter [${unknown}]`);
      const { _id: id } = given;
      if (typeof id !== 'string' || id === '')
        return illegal('an id must be provided if version type or value are set');
      if (Buffer.byteLength(id) > 512)
        return failed(400, 'action_request_validation_exception', `id is too long, must be no longer than 512 bytes`);
      actions.push([action, name === 'index' ? JSON.parse(lines[++at] ?? '') : null]);
    }
    const items = actions.map(([action, source]) => act(documents, action, source));
    return { status: 200, body: { errors: items.some((item) => JSON.stringify(item).includes('"error"')), items } };
  }

  /** Reads or writes one document, with optimistic concurrency control. */
  function document({ method, body, query, type }: Asked, documents: Index['documents'], id: string): Answer {
    const old = documents.get(id);
    if (method === 'GET') {
      if (old === undefined) return { status: 404, body: { _id: id, found: false } };
      return { status: 200, body: { _id: id, found: true, _source: old.source, _seq_no: old.seqNo, _primary_term: 1 } };
    }
    if (type !== 'application/json') return { status: 406, body: { error: 'Content-Type header is not supported' } };
    const isFirst = query.get('op_type') === 'create';
    const expected = isFirst ? undefined : Number(query.get('if_seq_no'));
    if (old?.seqNo !== expected || (!isFirst && query.get('if_primary_term') !== '1'))
      return failed(409, 'version_conflict_engine_exception', `[${id}]: version conflict, required seqNo`);
    documents.set(id, { source: JSON.parse(body), version: 1n, seqNo: ++numbers });
    return { status: isFirst ? 201 : 200, body: { _id: id, _seq_no: numbers, _primary_term: 1 } };
  }

  function scroll(id: string): Answer {
    const held = scrolls.get(id);
    if (held === undefined) return failed(404, 'search_phase_execution_exception', 'No search context found');
    const hits = held.hits.splice(0, held.size);
    return { status: 200, body: { _scroll_id: id, hits: { hits } } };
  }

  function search({ body, query }: Asked, documents: Index['documents']): Answer {
    const asked = JSON.parse(body) as { readonly size: number; readonly _source: boolean };
    const unknown = [...keysBesides(asked, ['size', 'version', '_source', 'sort'])];
    if (unknown.length > 0) return failed(400, 'parsing_exception', `unknown key [${unknown[0]}]`);
    if (asked.size > 10_000 || !query.has('scroll')) return failed(400, 'illegal_argument_exception', 'too many');
    const living = [...documents].filter(([, { source }]) => source !== null);
    const hits = living.map(([_id, { version, source }]) => ({
      _id,
      _version: Number(version),
      ...(asked._source && { _source: source }),
    }));
    scrolls.set(`scroll-${++numbers}`, { hits, size: asked.size });
    return scroll(`scroll-${numbers}`);
  }

  /** Reads, deletes or creates an index. */
  function whole({ method, body }: Asked, name: string): Answer {
    if (method === 'PUT') {
      const { mappings, settings } = JSON.parse(body) as {
        readonly mappings: unknown;
        readonly settings: { readonly index: object };
      };
      const [unknown] = keysBesides(settings.index, ['number_of_shards']);
      if (unknown !== undefined) return failed(400, 'illegal_argument_exception', `private index setting [${unknown}]`);
      if (indices.has(name)) return failed(400, 'resource_already_exists_exception', `index [${name}] already exists`);
      if (JSON.stringify(mappings) !== JSON.stringify(MAPPINGS)) throw new Error('the mapping is lost');
      renew(name);
      return { status: 200, body: { acknowledged: true } };
    }
    const index = indices.get(name);
    if (index === undefined) return failed(404, 'index_not_found_exception', `no such index [${name}]`);
    if (method === 'DELETE') {
      indices.delete(name);
      return { status: 200, body: { acknowledged: true } };
    }
    const own = { uuid: index.uuid, creation_date: '1', provided_name: name, version: { created: '1' } };
    const settings = { index: { number_of_shards: '1', ...own } };
    return { status: 200, body: { [name]: { aliases: {}, mappings: MAPPINGS, settings } } };
  }

  function answer(asked: Asked): Answer {
    const { method, headers, query, body } = asked;
    const [name = '', verb = '', id = ''] = asked.path;
    if (headers.authorization !== `Basic ${Buffer.from(secret).toString('base64')}`)
      return failed(401, 'security_exception', 'unable to authenticate user');
    if (Buffer.byteLength(body) > MOST_BYTES) return { status: 413, body: '' };
    if (name === '_search' && verb === 'scroll')
      return scroll(String((JSON.parse(body) as Record<string, unknown>).scroll_id));
    if (asked.path.length === 1) return whole(asked, name);
    const known = PARAMETERS[verb];
    if (known === undefined)
      return failed(400, 'illegal_argument_exception', `no handler found for ${method} ${name}/${verb}`);
    const [unknown] = [...query.keys()].filter((key) => !known.includes(key));
    if (unknown !== undefined) return failed(400, 'illegal_argument_exception', `unrecognized parameter: [${unknown}]`);
    // Engines make a missing index when a document is written.
    if (!indices.has(name) && (verb === '_bulk' || method === 'PUT')) renew(name);
    const index = indices.get(name);
    if (index === undefined) return failed(404, 'index_not_found_exception', `no such index [${name}]`);
    if (verb === '_settings') return { status: 200, body: { [name]: { settings: { index: { uuid: index.uuid } } } } };
    if (verb === '_refresh') return { status: 200, body: { _shards: { failed: 0 } } };
    if (verb === '_count')
      return {
        status: 200,
        body: { count: [...index.documents.values()].filter(({ source }) => source !== null).length },
      };
    if (verb === '_bulk') return bulk(asked, index.documents);
    return verb === '_doc' ? document(asked, index.documents, id) : search(asked, index.documents);
  }

  return {
    answer,
    module: 'opensearch-sink.mjs',
    options: 'url=http://127.0.0.1:PORT&index=products',
    secret,
    renew,
    tamper: () => {
      const documents = indices.get('products')?.documents;
      const [changed, deleted] = [documents?.get('P1'), documents?.get('P2')];
      if (changed === undefined || deleted === undefined) throw new Error('P1 and P2 must be there');
      documents?.set('P1', { ...changed, source: { vbid: 'P1', title: 'x' }, version: changed.version + 1n });
      documents?.set('P2', { ...deleted, source: null, version: deleted.version + 1n });
      documents?.set('EXTRA', { source: { vbid: 'EXTRA' }, version: 1n, seqNo: ++numbers });
      documents?.set('copy_1', { source: documents.get('P3')?.source, version: 1n, seqNo: ++numbers });
    },
    products: () => {
      const living = [...(indices.get('products')?.documents.values() ?? [])].filter(({ source }) => source !== null);
      return new Map(living.map(({ source }) => [(source as { readonly vbid: string }).vbid, source]));
    },
  };
}
