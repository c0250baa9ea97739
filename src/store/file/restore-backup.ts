import { chmodSync, chownSync, linkSync, renameSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { makeDirectory, syncDirectory } from '@catchword/base/durable-names';
import { CatchwordError, hasCode, messageOf, systemCodeOf, usageError } from '@catchword/base/errors';
import BetterSqlite from 'better-sqlite3';
import { createSinkReader, type SinkRow } from '../rows/sink-rows.ts';
import { createSourceReader } from '../rows/source-state.ts';
import { createSinkRequests, createSinkWriter, type NamedSink } from '../rows/write-sinks.ts';
import { createQueries } from '../schema/queries.ts';
import { openSqlite } from '../schema/statements.ts';
import { type CopyOptions, withCopy, withOwnFile } from './back-up.ts';
import { backupFailed, beginOther, type Copied } from './copy-mirror.ts';
import { freePath, nameOf } from './inode-check.ts';
import { COMPANIONS, lookAt, unusable } from './mirror-path.ts';
import { closeForReaders, explain, openMirrorFile, schemaVersion, withoutLinks } from './open-mirror-file.ts';

/*
 * Puts a backup in the place of the mirror:
 *
 *   copy and check FILE as <mirror>.restoring ─► lock out every other process ─► upgrade the copy
 *     ─► begin a new incarnation in it ─► keep the old mirror under another name ─► rename the copy
 *
 * At each moment the mirror's path names the old mirror, complete, or the new one, complete. The old one has no WAL by
 * then: SQLite has moved it into the file.
 *
 * A restored mirror assigns numbers of changes and runs again. Eras alone would keep the ids of events apart; a new
 * incarnation also keeps apart what has no era: the pages of lost runs that are still in Redis, and the positions that
 * stores note. And every store is filled again, because it may have changes that the mirror does not have.
 */

interface RestoreOptions extends CopyOptions {
  /** Sinks of the settings: the backup may be older than some of them. */
  readonly sinks: readonly NamedSink[];
}

export interface Restored extends Copied {
  readonly incarnation: string;
  /** Address of the service that it mirrors; null if it has noted none. */
  readonly address: string | null;
  /** Where the former mirror is; null if there was none. */
  readonly kept: string | null;
  /** Every sink, as the mirror now knows it: each is filled again. */
  readonly sinks: readonly SinkRow[];
}

/**
 * Upgrades a copy, and makes another mirror of it, whose next run reads everything.
 * @throws as `openMirrorFile`
 */
function beginIncarnation(
  path: string,
  named: readonly NamedSink[],
): Pick<Restored, 'incarnation' | 'address' | 'sinks'> {
  const { sqlite, orm, close } = openMirrorFile(path, { mustExist: true });
  try {
    const queries = createQueries(sqlite);
    const reader = createSinkReader(queries, orm);
    const { configure } = createSinkWriter(queries, reader);
    const { replay } = createSinkRequests(queries, reader);
    const incarnation = sqlite
      .transaction(() => {
        const other = beginOther(queries);
        queries.write(
          "UPDATE mirror SET source_selection = json_set(source_selection, '$.unfinished', json('true'))",
        )();
        for (const sink of named) configure(sink);
        for (const sink of reader.list()) replay(sink, null);
        return other;
      })
      .immediate();
    const address = createSourceReader(queries).noted()?.address ?? null;
    return { incarnation, address, sinks: reader.list() };
  } finally {
    close();
  }
}

const MOVE = 'Stop catchword, move the file away with its -wal and -shm, and run the command again.';

/** Puts a file back into WAL mode, and closes it. Another process that has just opened it does so itself. */
function leave(path: string, sqlite: BetterSqlite.Database): void {
  try {
    if (sqlite.inTransaction) sqlite.exec('ROLLBACK');
    sqlite.exec('PRAGMA journal_mode = WAL');
    closeForReaders(path, sqlite);
  } catch (error) {
    if (!(error instanceof BetterSqlite.SqliteError)) throw error;
  } finally {
    sqlite.close();
  }
}

/**
 * Locks a mirror during `work`, its WAL in the file. If the path has the same file then, it is in WAL mode again.
 * @throws CatchwordError MIRROR_BUSY if any process has it open; MIRROR_UNUSABLE
 */
function withoutOthers<T>(path: string, work: () => T): T {
  const opened = nameOf(path);
  let sqlite: BetterSqlite.Database | undefined;
  let isLocked = false;
  try {
    sqlite = openSqlite(path, { timeout: 0 });
    if (schemaVersion(sqlite) === null) throw unusable(path, "is another program's database", MOVE);
    // Every connection in WAL mode holds a lock for as long as it is open. Leaving WAL mode needs all of them gone.
    sqlite.exec('PRAGMA journal_mode = DELETE');
    isLocked = true;
    sqlite.exec('BEGIN EXCLUSIVE');
    return work();
  } catch (error) {
    if (systemCodeOf(error)?.startsWith('SQLITE_BUSY')) {
      const hint =
        'Stop every catchword process of it (npx catchword status shows the daemon), and programs that read it.';
      throw new CatchwordError('MIRROR_BUSY', `another process has ${path} open`, { hint, cause: error });
    }
    if (error instanceof BetterSqlite.SqliteError) {
      const explained = explain(path, false, error);
      throw hasCode(explained, 'MIRROR_UNUSABLE') ? explained.with({ hint: MOVE }) : explained;
    }
    throw error;
  } finally {
    if (sqlite !== undefined && isLocked && nameOf(path) === opened) leave(path, sqlite);
    else sqlite?.close();
  }
}

/** Gives a copy the mode and the owner of the file that it replaces. @throws CatchwordError BACKUP_FAILED */
function dressAs(path: string, former: string): void {
  const { mode, uid, gid } = statSync(former);
  const own = statSync(path);
  try {
    if (own.uid !== uid || own.gid !== gid) chownSync(path, uid, gid);
  } catch (cause) {
    const what = `${former} has another owner or group, which this user cannot give to a file (${messageOf(cause)})`;
    const hint = 'Run this as the owner of the mirror, or as root. The mirror was not changed.';
    throw new CatchwordError('BACKUP_FAILED', what, { hint, cause });
  }
  chmodSync(path, mode & 0o777);
}

/**
 * Puts a copy in the place of the mirror.
 * @param makeReady called while the mirror that it replaces is locked
 */
function putInPlace<T>(copy: string, path: string, makeReady: () => T): T & Pick<Restored, 'kept'> {
  const directory = dirname(path);
  function rename(): void {
    renameSync(copy, path);
    syncDirectory(directory);
  }
  if (lookAt(path) === undefined) {
    const made = makeReady();
    rename();
    return { ...made, kept: null };
  }
  return withoutOthers(path, () => {
    const made = makeReady();
    dressAs(copy, path);
    const kept = freePath(`${path}.before-restore`);
    linkSync(path, kept);
    // A power failure must not keep the rename and lose this name.
    syncDirectory(directory);
    rename();
    return { ...made, kept };
  });
}

function checkBackup(file: string, path: string, part: string): void {
  const found = lookAt(file);
  if (found === undefined) {
    const hint = 'Name a file that catchword backup has made.';
    throw new CatchwordError('NOT_FOUND', `no backup at ${file}`, { hint });
  }
  if (nameOf(file) === nameOf(part)) {
    const hint = 'Give it another name: a restored mirror has this one until it is complete.';
    throw usageError(`${file} would be replaced by a copy of itself`, hint);
  }
  if (nameOf(file) === nameOf(path)) throw usageError(`${file} is the mirror itself`, 'Name a backup of it.');
  const left = lookAt(path) === undefined && COMPANIONS.find((end) => lookAt(`${path}${end}`) !== undefined);
  if (typeof left !== 'string') return;
  const hint = 'Move it away; it belongs to a mirror that is not there any more.';
  throw usageError(`${path}${left} is there, and would be applied to the restored mirror`, hint);
}

/**
 * Replaces the mirror by a backup, as a new incarnation: the next run reads everything, and every sink is filled again.
 * The former mirror is kept. After a failure, the mirror is as it was.
 * @param db path of the mirror, which need not exist
 * @throws CatchwordError USAGE, NOT_FOUND, MIRROR_UNUSABLE, MIRROR_BUSY, BACKUP_FAILED, INTERRUPTED
 */
export async function restore(db: string, file: string, { sinks, ...options }: RestoreOptions): Promise<Restored> {
  const path = withoutLinks(resolve(db));
  const from = resolve(file);
  const part = `${path}.restoring`;
  checkBackup(from, path, part);
  try {
    makeDirectory(dirname(path));
  } catch (cause) {
    throw backupFailed(path, cause);
  }
  // Tells before a long copy; it is asked again after it.
  if (lookAt(path) !== undefined) withoutOthers(path, () => {});
  return await withOwnFile(path, () =>
    withCopy(from, part, options, (copied) => {
      try {
        const placed = putInPlace(part, path, () => {
          const begun = beginIncarnation(part, sinks);
          // All of it is in one file now, or this fails.
          withoutOthers(part, () => {});
          return begun;
        });
        return { ...copied, ...placed };
      } catch (error) {
        throw error instanceof CatchwordError ? error : backupFailed(path, error);
      }
    }),
  );
}
