/**
 * A sink of your own: a directory with one file a product. Use it with
 *
 *   CATCHWORD_SINK_FILES=module:examples/files-sink.mjs?directory=data/products
 *
 * It is fed at least once: after a crash the last batch may come again, which here makes no difference. What every
 * method has to do is written in catchword/sink (src/relay/sink.ts).
 */
import { access, constants, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** @type {import('catchword/sink').SinkFactory} */
export function createSink({ url }) {
  const directory = url.searchParams.get('directory');
  if (directory === null) throw new Error('directory=PATH is missing');

  /** A key may hold anything; a file name may not. */
  const fileOf = (vbid) => join(directory, `${encodeURIComponent(vbid)}.json`);

  return {
    batch: { events: 500, chars: 4_000_000 },

    // It keeps no mark of its own, so it does not know how far it is: the mirror's word counts.
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
      if (!exists) return 'will be made';
      await access(directory, constants.W_OK);
      return 'can be written';
    },
  };
}
