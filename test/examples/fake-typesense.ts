import { type Answer, type Asked, type Engine, productsIn } from './engine.ts';

/*
 * A double of Typesense, as far as examples/typesense-sink.mjs uses it. Sources: "Documents" (an import answers 200 with a
 * line for each document, and a document that fails stays alone; an id has no character that an address encodes), "Collections",
 * "API errors", and its source (422 for every write while its disk or memory is full).
 */

type Fields = readonly { readonly name: string; readonly type: string }[];

interface Collection {
  readonly fields: Fields;
  readonly createdAt: number;
  readonly documents: Map<string, Record<string, unknown>>;
}

const failed = (status: number, message: string): Answer => ({ status, body: { message } });

/** The parameters of each request; Typesense ignores others, so a slip would not be noticed there. */
const PARAMETERS = ['action', 'filter_by'];

export function createTypesense(secret = 'a-key-of-typesense'): Engine {
  const collections = new Map<string, Collection>();
  let made = 0;

  function make(name: string, fields: Fields): void {
    collections.set(name, { fields, createdAt: 1_700_000_000 + ++made, documents: new Map() });
  }
  make('products', []);

  /** @returns why it is rejected */
  function upsert({ fields, documents }: Collection, line: string): string | null {
    let document: Record<string, unknown>;
    try {
      document = JSON.parse(line) as Record<string, unknown>;
    } catch {
      return 'Bad JSON.';
    }
    const { id } = document;
    if (typeof id !== 'string' || id === '') return 'Document `id` should be a string.';
    if (encodeURIComponent(id) !== id) throw new Error(`the id ${id} would be encoded in an address`);
    for (const { name, type } of fields) {
      if (document[name] === undefined)
        return `Field \`${name}\` has been declared in the schema, but is not found in the document.`;
      if (type === 'int64' && !Number.isInteger(document[name])) return `Field \`${name}\` must be an int64.`;
    }
    documents.set(id, document);
    return null;
  }

  function load({ body, query, type }: Asked, collection: Collection): Answer {
    if (type !== 'text/plain') throw new Error('fetch labels a text as text/plain');
    if (query.get('action') !== 'upsert') return failed(400, 'Parameter `action` must be upsert here');
    const lines = body.split('\n').map((line) => {
      const error = upsert(collection, line);
      return JSON.stringify(error === null ? { success: true } : { code: 400, document: line, error, success: false });
    });
    return { status: 200, body: lines.join('\n') };
  }

  /** Deletes by `id:[a,b]`. */
  function remove({ query }: Asked, { documents }: Collection): Answer {
    const listed = /^id:\[([\w,-]+)\]$/.exec(query.get('filter_by') ?? '')?.[1];
    if (listed === undefined) return failed(400, 'Could not parse the filter query.');
    const deleted = listed.split(',').filter((id) => documents.delete(id));
    return { status: 200, body: { num_deleted: deleted.length } };
  }

  function onCollection(asked: Asked, name: string, part: string | undefined, id: string | undefined): Answer {
    const collection = collections.get(name);
    if (collection === undefined) return failed(404, 'Not Found');
    const { fields, createdAt, documents } = collection;
    if (part === undefined && asked.method === 'DELETE') {
      collections.delete(name);
      return { status: 200, body: { name } };
    }
    if (part === undefined)
      return { status: 200, body: { name, fields, created_at: createdAt, num_documents: documents.size } };
    if (asked.method === 'DELETE') return remove(asked, collection);
    if (id === 'export' && asked.method === 'GET') {
      const lines = [...documents.values()].map((document) => JSON.stringify(document));
      return { status: 200, body: lines.join('\n') };
    }
    if (id === 'import') return load(asked, collection);
    if (asked.method === 'POST') {
      const error = upsert(collection, asked.body);
      return error === null ? { status: 201, body: asked.body } : failed(400, error);
    }
    const found = documents.get(id ?? '');
    return found === undefined ? failed(404, `Could not find a document with id: ${id}`) : { status: 200, body: found };
  }

  function answer(asked: Asked): Answer {
    const [room, name = '', part, id] = asked.path;
    if (asked.headers['x-typesense-api-key'] !== secret)
      return failed(401, 'Forbidden - a valid `x-typesense-api-key` header must be sent.');
    const [unknown] = [...asked.query.keys()].filter((key) => !PARAMETERS.includes(key));
    if (room !== 'collections' || unknown !== undefined) return failed(404, 'Not Found');
    if (asked.method === 'POST' && name === '') {
      const schema = JSON.parse(asked.body) as { readonly name: string; readonly fields: Fields };
      if (collections.has(schema.name)) return failed(409, `A collection with name \`${schema.name}\` already exists.`);
      make(schema.name, schema.fields);
      return { status: 201, body: schema };
    }
    return onCollection(asked, name, part, id);
  }

  return {
    answer,
    module: 'typesense-sink.mjs',
    options: 'url=http://127.0.0.1:PORT&collection=products',
    secret,
    tamper: () => {
      const documents = collections.get('products')?.documents;
      documents?.set('P1', { ...documents.get('P1'), title: 'x' }).delete('P2');
      documents?.set('EXTRA', { vbid: 'EXTRA', id: 'EXTRA' });
      documents?.set('copy_1', { ...documents.get('P3'), id: 'copy_1' });
    },
    products: () => {
      const documents = [...(collections.get('products')?.documents.values() ?? [])];
      return productsIn(documents, ['id']);
    },
  };
}
