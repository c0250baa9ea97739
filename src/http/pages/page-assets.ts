import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import type { FastifyInstance } from 'fastify';

const require = createRequire(import.meta.url);

function own(name: string): URL {
  return new URL(`./assets/${name}`, import.meta.url);
}

/** Files of the page: our own, and libraries as they are published. */
const SOURCES = {
  'page.css': [
    require.resolve('uplot/dist/uPlot.min.css'),
    own('page.css'),
    own('overview.css'),
    own('runs.css'),
    own('products.css'),
  ],
  'page.js': [own('page.js')],
  'runs.js': [own('runs.js')],
  'idiomorph.js': [require.resolve('idiomorph/dist/idiomorph.min.js')],
  'uplot.js': [require.resolve('uplot/dist/uPlot.iife.min.js')],
};

/** Read once per process: an upgrade restarts it. */
const ASSETS = new Map(
  Object.entries(SOURCES).map(([name, files]) => {
    const text = Buffer.concat(files.map((file) => readFileSync(file)));
    const version = createHash('sha256').update(text).digest('hex').slice(0, 12);
    const type = `text/${name.endsWith('.css') ? 'css' : 'javascript'}; charset=utf-8`;
    return [name, { text, zipped: gzipSync(text, { level: 9 }), type, path: `/assets/${version}/${name}` }] as const;
  }),
);

export function acceptsGzip({ 'accept-encoding': accepted = '' }: IncomingHttpHeaders): boolean {
  return accepted.includes('gzip');
}

/** The address changes with the content, so that browsers may keep it for good. */
export function assetPath(name: keyof typeof SOURCES): string {
  return ASSETS.get(name)?.path ?? '';
}

export function addAssets(app: FastifyInstance): void {
  for (const { path, text, zipped, type } of ASSETS.values()) {
    app.get(path, async ({ headers }, reply) => {
      reply.headers({ 'cache-control': 'public, max-age=31536000, immutable', vary: 'accept-encoding' }).type(type);
      if (!acceptsGzip(headers)) return reply.send(text);
      return reply.header('content-encoding', 'gzip').send(zipped);
    });
  }
}
