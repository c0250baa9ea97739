import { Transform } from 'node:stream';

/*
 * The driver's parser never ends on an error or a notice of the server that is cut short, and while it runs the whole
 * process stands still. So these messages are checked before the parser gets them.
 *
 * A message is one byte for its kind, four for its length (which counts itself), and its content. An error or a notice has
 * fields, each one byte and a text that ends with a zero, and ends with a zero.
 */

const HEADER_BYTES = 5;
const MIN_LENGTH = 4;
/** A server may be set to report all parameters of a failed statement: a whole batch, with each quote doubled. */
const MAX_REPORT_LENGTH = 2 ** 26;
const REPORTS = Buffer.from('EN');

function isWholeReport(content: Buffer): boolean {
  let at = 0;
  while (content.length > at && content[at] !== 0) {
    const end = content.indexOf(0, at + 1);
    if (end === -1) return false;
    at = end + 1;
  }
  return at === content.length - 1;
}

/** Makes a function that gets a server's messages in pieces. It throws an Error at one that is malformed. */
function createCheck(): (piece: Buffer) => void {
  /** The beginning of a message, and how many of its bytes are needed. Pieces are joined once: a report may have many. */
  let pending: Buffer[] = [];
  let missing = HEADER_BYTES;
  let skipping = 0;
  const malformed = (): Error => new Error('the server sent a malformed message; is it a PostgreSQL?');
  return (piece) => {
    pending.push(piece);
    missing -= piece.length;
    if (missing > 0) return;
    let data = pending.length === 1 ? piece : Buffer.concat(pending);
    for (;;) {
      missing = HEADER_BYTES;
      const skipped = Math.min(skipping, data.length);
      skipping -= skipped;
      data = data.subarray(skipped);
      if (data.length < HEADER_BYTES) break;
      const length = data.readUInt32BE(1);
      if (length < MIN_LENGTH) throw malformed();
      if (!REPORTS.includes(data[0] ?? 0)) {
        skipping = 1 + length;
        continue;
      }
      if (length > MAX_REPORT_LENGTH) throw malformed();
      missing = 1 + length;
      if (data.length < missing) break;
      if (!isWholeReport(data.subarray(HEADER_BYTES, 1 + length))) throw malformed();
      data = data.subarray(1 + length);
    }
    pending = data.length === 0 ? [] : [data];
    missing -= data.length;
  };
}

/** Passes on what a server sends, up to a malformed message, which is an error, as is whatever the parser behind throws. */
export function messageCheck(): Transform {
  const check = createCheck();
  return new Transform({
    transform: (piece: Buffer, _encoding, done) => {
      try {
        check(piece);
        done(null, piece);
      } catch (error) {
        done(error as Error);
      }
    },
  });
}
