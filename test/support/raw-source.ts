import { gzipSync } from 'node:zlib';
import { serveHttp } from './listen.ts';

export interface RawSource {
  url: string;
  /** The items that `GET /v4/products` lists, sent byte by byte. */
  items: readonly Buffer[];
  /** The items that its deltas list; none at first. */
  changed: readonly Buffer[];
  /** What happens to the source before it answers a request. */
  before: (url: URL) => void;
  /** What a lookup finds; null: nothing. */
  find: (vbid: string) => Buffer | null;
  /** Requests so far. */
  readonly requests: readonly URL[];
}

const POSITIVE = (value: string | null): number => Math.max(1, Number(value ?? 1));

/** A source whose items are any bytes, which the sandbox does not send. */
export async function startRawSource(items: readonly Buffer[], { gzip = false } = {}): Promise<RawSource> {
  const requests: URL[] = [];
  const source: RawSource = { url: '', items, changed: [], before: () => {}, find: () => null, requests };
  source.url = await serveHttp((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    requests.push(url);
    source.before(url);
    const [, vbid] = /\/products\/(.+)$/.exec(url.pathname) ?? [];
    if (vbid !== undefined) {
      const found = source.find(vbid);
      response.writeHead(found === null ? 404 : 200, { 'content-type': 'application/json' });
      response.end(found ?? '{"errors":["Book not found"]}');
      return;
    }
    const [page, perPage] = [POSITIVE(url.searchParams.get('page')), POSITIVE(url.searchParams.get('per_page'))];
    const listed = url.searchParams.has('from') ? source.changed : source.items;
    const shown = listed.slice((page - 1) * perPage, page * perPage);
    const pages = Math.ceil(listed.length / perPage);
    const head = `{"num_items":${listed.length},"page":${page},"per_page":${perPage},"total_pages":${pages},"items":[`;
    const parts = shown.flatMap((item, index) => (index === 0 ? [item] : [Buffer.from(','), item]));
    const body = Buffer.concat([Buffer.from(head), ...parts, Buffer.from(']}')]);
    response.writeHead(200, { 'content-type': 'application/json', ...(gzip && { 'content-encoding': 'gzip' }) });
    response.end(gzip ? gzipSync(body) : body);
  });
  return source;
}
