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
  'page.css': {
    files: [
      require.resolve('uplot/dist/uPlot.min.css'),
      own('page.css'),
      own('overview.css'),
      own('runs.css'),
      own('products.css'),
    ],
    type: 'text/css',
  },
  'page.js': { files: [own('page.js')], type: 'text/javascript' },
  'runs.js': { files: [own('runs.js')], type: 'text/javascript' },
  'idiomorph.js': { files: [require.resolve('idiomorph/dist/idiomorph.min.js')], type: 'text/javascript' },
  'uplot.js': { files: [require.resolve('uplot/dist/uPlot.iife.min.js')], type: 'text/javascript' },
};

type Name = keyof typeof SOURCES;

/** Read once per process: an upgrade restarts it. */
const ASSETS = new Map(
  Object.entries(SOURCES).map(([name, { files, type }]) => {
    const text = Buffer.concat(files.map((file) => readFileSync(file)));
    const version = createHash('sha256').update(text).digest('hex').slice(0, 12);
    return [name, { text, zipped: gzipSync(text, { level: 9 }), type: `${type}; charset=utf-8`, version }] as const;
  }),
);

export function acceptsGzip({ 'accept-encoding': accepted = '' }: IncomingHttpHeaders): boolean {
  return accepted.includes('gzip');
}

/** The address changes with the content, so that browsers may keep it for good. */
export function assetPath(name: Name): string {
  return `/assets/${ASSETS.get(name)?.version}/${name}`;
}

export function addAssets(app: FastifyInstance): void {
  for (const [name, { text, zipped, type }] of ASSETS) {
    app.get(assetPath(name as Name), async ({ headers }, reply) => {
      reply.headers({ 'cache-control': 'public, max-age=31536000, immutable', vary: 'accept-encoding' }).type(type);
      if (!acceptsGzip(headers)) return reply.send(text);
      return reply.header('content-encoding', 'gzip').send(zipped);
    });
  }
}
