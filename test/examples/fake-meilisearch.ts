import { type Answer, type Asked, type Engine, productsIn } from './engine.ts';

/*
 * A double of Meilisearch, as far as examples/meilisearch-sink.mjs uses it. Sources: "Tasks" (a request that writes is
 * queued, answered with 202, and carried out later, in order), "Primary key" (an id has A-Z, a-z, 0-9, - and _, at most 511
 * bytes), "Error codes", "Known limitations" (a payload of 100 MB).
 */

interface Task {
  status: 'enqueued' | 'processing' | 'succeeded' | 'failed';
  error: { readonly code: string; readonly type: string } | null;
  /** Carries it out. @returns the code of an error */
  readonly work: () => string | null;
}

interface Index {
  readonly primaryKey: string;
  readonly createdAt: string;
  readonly documents: Map<string, Record<string, unknown>>;
}

const MOST_BYTES = 10_000_000;
const UID = /^[A-Za-z0-9_-]{1,400}$/;
const ID = /^[A-Za-z0-9_-]{1,511}$/;

const failed = (status: number, code: string): Answer => ({
  status,
  body: { code, type: 'invalid_request', message: code },
});

export function createMeilisearch(secret = 'a-key-of-meilisearch'): Engine {
  const indices = new Map<string, Index>();
  const tasks: Task[] = [];
  let made = 0;
  /** The first task that may not have been carried out. */
  let next = 0;

  function make(uid: string, primaryKey: string): Index {
    const index = { primaryKey, createdAt: new Date(1_700_000_000_000 + ++made).toISOString(), documents: new Map() };
    indices.set(uid, index);
    return index;
  }

  const queue = (uid: string, work: Task['work']): Answer => {
    const taskUid = tasks.push({ status: 'enqueued', error: null, work }) - 1;
    return { status: 202, body: { taskUid, indexUid: uid, status: 'enqueued' } };
  };

  /** Carries out tasks in order. Each look at a task advances it by one step, so that the first look never shows its end. */
  function task(uid: number): Answer {
    const found = tasks[uid];
    if (found === undefined) return failed(404, 'task_not_found');
    for (; next < uid; next++) {
      const earlier = tasks[next];
      if (earlier?.error === null && earlier.status !== 'succeeded') end(earlier);
    }
    if (found.status === 'enqueued') found.status = 'processing';
    else if (found.status === 'processing') end(found);
    const { status, error } = found;
    return { status: 200, body: { uid, status, error } };
  }

  function end(task: Task): void {
    const code = task.work();
    task.status = code === null ? 'succeeded' : 'failed';
    task.error = code === null ? null : { code, type: 'invalid_request' };
  }

  function add(uid: string, primaryKey: string | undefined, added: readonly Record<string, unknown>[]): string | null {
    const index = indices.get(uid) ?? make(uid, primaryKey ?? 'id');
    if (primaryKey !== undefined && primaryKey !== index.primaryKey) return 'index_primary_key_already_exists';
    const ids = added.map((document) => document[index.primaryKey]);
    if (ids.includes(undefined)) return 'missing_document_id';
    if (!ids.every((id) => typeof id === 'string' && ID.test(id))) return 'invalid_document_id';
    for (const document of added) index.documents.set(String(document[index.primaryKey]), document);
    return null;
  }

  function list({ query }: Asked, { documents }: Index): Answer {
    const [unknown] = [...query.keys()].filter((key) => !['fields', 'limit', 'offset'].includes(key));
    if (unknown !== undefined) return failed(400, 'bad_request');
    const [limit, offset] = [Number(query.get('limit')), Number(query.get('offset'))];
    const fields = query.get('fields')?.split(',');
    const all = [...documents.values()].slice(offset, offset + limit);
    const results = all.map((document) =>
      fields === undefined ? document : Object.fromEntries(fields.map((field) => [field, document[field]])),
    );
    return { status: 200, body: { results, offset, limit, total: documents.size } };
  }

  function onDocuments(asked: Asked, uid: string, part: string | undefined): Answer {
    const { method, body, query } = asked;
    const index = indices.get(uid);
    if (method === 'POST' && part === 'delete-batch') {
      const ids = JSON.parse(body) as readonly string[];
      return queue(uid, () => {
        for (const id of ids) index?.documents.delete(id);
        return index === undefined ? 'index_not_found' : null;
      });
    }
    if (method === 'POST' && part === undefined) {
      if ([...query.keys()].some((key) => key !== 'primaryKey')) return failed(400, 'bad_request');
      const added = JSON.parse(body) as readonly Record<string, unknown>[];
      return queue(uid, () => add(uid, query.get('primaryKey'), added));
    }
    if (index === undefined) return failed(404, 'index_not_found');
    if (method !== 'GET') return failed(405, 'bad_request');
    if (part === undefined) return list(asked, index);
    const found = index.documents.get(part);
    return found === undefined ? failed(404, 'document_not_found') : { status: 200, body: found };
  }

  function onIndex(method: string, uid: string, part: string | undefined): Answer {
    const index = indices.get(uid);
    if (index === undefined) return failed(404, 'index_not_found');
    const { primaryKey, createdAt, documents } = index;
    if (method === 'DELETE')
      return queue(uid, () => {
        indices.delete(uid);
        return null;
      });
    if (part === 'stats') return { status: 200, body: { numberOfDocuments: documents.size, isIndexing: false } };
    return { status: 200, body: { uid, primaryKey, createdAt, updatedAt: createdAt } };
  }

  function answer(asked: Asked): Answer {
    const { method, headers, body, type } = asked;
    const [room = '', uid = '', part, id] = asked.path;
    if (headers.authorization === undefined) return failed(401, 'missing_authorization_header');
    if (headers.authorization !== `Bearer ${secret}`) return failed(403, 'invalid_api_key');
    if (Buffer.byteLength(body) > MOST_BYTES) return failed(413, 'payload_too_large');
    if (method === 'POST' && type === '') return failed(415, 'missing_content_type');
    if (method === 'POST' && type !== 'application/json') return failed(415, 'invalid_content_type');
    if (room === 'tasks') return task(Number(uid));
    if (room !== 'indexes') return failed(404, 'not_found');
    if (uid !== '' && !UID.test(uid)) return failed(400, 'invalid_index_uid');
    if (method === 'POST' && uid === '') {
      const given = JSON.parse(body) as { readonly uid: string; readonly primaryKey: string };
      return queue(given.uid, () => {
        if (indices.has(given.uid)) return 'index_already_exists';
        make(given.uid, given.primaryKey);
        return null;
      });
    }
    return part === 'documents' ? onDocuments(asked, uid, id) : onIndex(method, uid, part);
  }

  return {
    answer,
    module: 'meilisearch-sink.mjs',
    options: 'url=http://127.0.0.1:PORT&index=products',
    secret,
    tamper: () => {
      const documents = indices.get('products')?.documents;
      documents?.set('P1', { ...documents.get('P1'), title: 'x' }).delete('P2');
      documents?.set('EXTRA', { vbid: 'EXTRA', catchword_id: 'EXTRA' });
      documents?.set('copy_1', { ...documents.get('P3'), catchword_id: 'copy_1' });
    },
    products: () => {
      const documents = [...(indices.get('products')?.documents.values() ?? [])];
      return productsIn(documents, ['catchword_id']);
    },
  };
}
