import { gzipSync } from 'node:zlib';
import { serveHttp } from './listen.ts';

export interface RawSource {
  url: string;
  /** The items that `GET /v4/products` lists, sent byte by byte. */
  items: readonly Buffer[];
  /** The items that its deltas list; none at first. */
  changed: readonly Buffer[];
  /** Requests so far. */
  readonly requests: readonly URL[];
  /** How far its clock is ahead of this machine's; milliseconds. */
  aheadMs: number;
  /** What a request is answered with instead; null: nothing. The source may change first. */
  instead: (asked: URL) => Instead | null;
}

interface Instead {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

const POSITIVE = (value: string | null): number => Math.max(1, Number(value ?? 1));

/** A source whose items are any bytes, which the sandbox does not send. */
export async function startRawSource(items: readonly Buffer[], { gzip = false } = {}): Promise<RawSource> {
  const requests: URL[] = [];
  const source: RawSource = { url: '', items, changed: [], requests, aheadMs: 0, instead: () => null };
  source.url = await serveHttp((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    requests.push(url);
    const instead = source.instead(url);
    if (source.aheadMs !== 0) response.setHeader('date', new Date(Date.now() + source.aheadMs).toUTCString());
    if (instead !== null) {
      response.writeHead(instead.status, { 'content-type': 'application/json', ...instead.headers }).end(instead.body);
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
