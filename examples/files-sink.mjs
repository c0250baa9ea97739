/**
 * An example of a sink: a directory with one file for each product. Use it with
 *
 *   CATCHWORD_SINK_FILES=module:examples/files-sink.mjs?directory=data/products
 *
 * Each event is delivered at least once: after a crash the last batch may come again, which makes no difference here.
 * catchword/sink (src/relay/sink.ts) describes what each method must do.
 */
import { access, constants, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** @type {import('catchword/sink').SinkFactory} */
export function createSink({ url }) {
  const directory = url.searchParams.get('directory');
  if (directory === null) throw new Error('directory=PATH is missing');

  /** Encodes a key, because it may contain characters that a file name cannot. */
  const fileOf = (vbid) => join(directory, `${encodeURIComponent(vbid)}.json`);

  return {
    batch: { events: 500, chars: 4_000_000 },

    // Returns null because the directory does not record its position: the mirror does.
    async open() {
      await mkdir(directory, { recursive: true });
      return null;
    },

    async deliver(events) {
      for (const { vbid, body } of events) {
        const file = fileOf(vbid);
        if (body === null) await rm(file, { force: true });
        else {
          // A reader sees the old file or the new one, never half of it.
          await writeFile(`${file}.new`, body, { flush: true });
          await rename(`${file}.new`, file);
        }
      }
    },

    async close() {},

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
