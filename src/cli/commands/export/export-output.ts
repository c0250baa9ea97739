import { rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import { renameDurably } from '../../../base/durable-names.ts';
import { checkedTarget, partOf, withOwnFile } from '../../../store/file/back-up.ts';
import { backupFailed } from '../../../store/file/copy-mirror.ts';
import { copyInterrupted } from '../../../store/file/copy-subprocess.ts';
import type { CommandContext } from '../shared/command-context.ts';
import { drained } from '../shared/output-format.ts';

export type Chunks = Iterable<string | Uint8Array>;

/** Prints the chunks as fast as stdout takes them. @throws CatchwordError INTERRUPTED */
export async function printChunks(context: CommandContext, chunks: Chunks): Promise<void> {
  const { stdout, signal } = context;
  for (const chunk of chunks) {
    if (!stdout.write(chunk)) await drained(context);
    // Lets a signal arrive, also while stdout takes everything at once.
    await nextTurn();
    if (signal.aborted) throw copyInterrupted().with({ message: 'interrupted; what was printed is not complete' });
  }
}

/**
 * Writes a file that does not exist yet, and only this user can read. It gets its name when it is complete and flushed.
 * @returns its size in bytes
 * @throws CatchwordError USAGE, BACKUP_FAILED, INTERRUPTED; what `chunks` throws
 */
export async function writeNewFile(file: string, db: string, chunks: Chunks, isZipped: boolean, signal: AbortSignal) {
  const target = checkedTarget(file, db);
  const part = partOf(target);
  return await withOwnFile(target, async () => {
    try {
      // A process that was killed may have left it.
      rmSync(part, { force: true });
      // Opened before the first chunk, which may fail: else the stream could create the file after it was removed.
      const to = (await open(part, 'wx', 0o600)).createWriteStream({ flush: true });
      if (isZipped) await pipeline(chunks, createGzip(), to, { signal });
      else await pipeline(chunks, to, { signal });
      checkedTarget(file, db);
      await renameDurably(part, target);
      return to.bytesWritten;
    } catch (error) {
      if (signal.aborted) throw copyInterrupted();
      throw error instanceof Error && 'syscall' in error ? backupFailed(target, error) : error;
    } finally {
      rmSync(part, { force: true });
    }
  });
}
