import { appendFileSync, readFileSync } from 'node:fs';

/** In the order of the numbers in shim.c; `mark` is written by `appendMark` only. */
const KINDS = ['create', 'write', 'truncate', 'sync', 'rename', 'unlink', 'mkdir', 'link', 'output', 'mark'] as const;

/** One call that was recorded. */
export interface Call {
  readonly kind: (typeof KINDS)[number];
  /** The errno of a sync that failed; 0 otherwise. */
  readonly error: number;
  /** Inode number of the file; of an output the file descriptor. */
  readonly inode: number;
  /** Where bytes were written; the new size of a truncated file. */
  readonly offset: number;
  readonly path: string;
  /** The new path of a renamed file. */
  readonly path2: string;
  /** What was written. */
  readonly bytes: Buffer;
}

const HEAD = 40;

/** Reads what shim.c recorded. */
export function readLog(path: string): readonly Call[] {
  const log = readFileSync(path);
  const calls: Call[] = [];
  for (let at = 0; at < log.length; ) {
    const [op, error] = [log.readUInt32LE(at), log.readInt32LE(at + 8)];
    const [length, length2, size] = [log.readUInt32LE(at + 12), log.readUInt32LE(at + 16), log.readUInt32LE(at + 20)];
    const kind = KINDS[op - 1];
    if (kind === undefined) throw new Error(`${path} has an unknown record at ${at}`);
    const bytesAt = at + HEAD + length + length2;
    calls.push({
      kind,
      error,
      inode: Number(log.readBigUInt64LE(at + 24)),
      offset: Number(log.readBigUInt64LE(at + 32)),
      path: log.toString('utf8', at + HEAD, at + HEAD + length),
      path2: log.toString('utf8', at + HEAD + length, bytesAt),
      bytes: log.subarray(bytesAt, bytesAt + size),
    });
    at = bytesAt + size;
  }
  return calls;
}

/** Writes what a person knows now into the log: a later crash must keep it. Call it while no recorded process runs. */
export function appendMark(path: string, known: unknown): void {
  const bytes = Buffer.from(JSON.stringify(known));
  const head = Buffer.alloc(HEAD);
  head.writeUInt32LE(KINDS.indexOf('mark') + 1, 0);
  head.writeUInt32LE(bytes.length, 20);
  appendFileSync(path, Buffer.concat([head, bytes]));
}
