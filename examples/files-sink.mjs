/**
 * An example of a custom sink: a directory with one file for each product. Configure it with
 *
 *   CATCHWORD_SINK_FILES=module:examples/files-sink.mjs?directory=data/products
 *
 * Events are delivered at least once: after a crash the last batch may be redelivered, which is harmless here. For the
 * contract of each method see catchword/sink (packages/sink-kit/src/sink.ts).
 */
import { createHash } from 'node:crypto';
import { access, constants, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Encodes the key, because it may contain characters that a file name may not; a file name has at most 255 bytes. */
function nameOf(vbid) {
  const name = encodeURIComponent(vbid);
  return name.length <= 200 ? name : `sha256-${createHash('sha256').update(vbid).digest('hex')}`;
}

/** The key of the product in a file. A file that is not ours begins with a tab, which no key has. */
function keyOf(name, text) {
  for (const find of [() => String(JSON.parse(text).vbid), () => decodeURIComponent(name)]) {
    try {
      const vbid = find();
      if (nameOf(vbid) === name) return vbid;
    } catch {
      // Somebody has written it.
    }
  }
  return `\t${name}`;
}

/** @type {import('catchword/sink').SinkFactory} */
export function createSink({ url }) {
  const directory = url.searchParams.get('directory');
  if (directory === null) throw new Error('directory=PATH is missing');

  const fileOf = (vbid) => join(directory, `${vbid.startsWith('\t') ? vbid.slice(1) : nameOf(vbid)}.json`);

  return {
    batch: { events: 500, chars: 4_000_000 },

    // Returns null because it stores no position: the mirror's cursor is used.
    async open() {
      await mkdir(directory, { recursive: true });
      return null;
    },

    async deliver(events) {
      for (const { vbid, body } of events) {
        const file = fileOf(vbid);
        if (body === null) await rm(file, { force: true });
        else {
          // Readers see the old file or the new one, never a part of it.
          await writeFile(`${file}.new`, body, { flush: true });
          await rename(`${file}.new`, file);
        }
      }
    },

    async close() {},

    // What `catchword sink verify` compares.
    async *list() {
      for (const file of await readdir(directory)) {
        if (!file.endsWith('.json')) continue;
        const body = await readFile(join(directory, file), 'utf8');
        yield [{ vbid: keyOf(file.slice(0, -'.json'.length), body), body }];
      }
    },

    async apply(events, extra) {
      await this.deliver([...events, ...extra.map((vbid) => ({ vbid, body: null }))]);
    },

    // For `catchword sink contract`.
    async drop() {
      await rm(directory, { recursive: true, force: true });
      return '';
    },

    async check() {
      const exists = await access(directory).then(
        () => true,
        () => false,
      );
      if (!exists) return 'will be created';
      await access(directory, constants.W_OK);
      return 'is writable';
    },
  };
}
