import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { query } from '@catchword/testing/sqlite';
import { sqliteToolsAvailable } from '@catchword/testing/sqlite-tools';
import { expect, it, onTestFinished } from 'vitest';
import { run, startProcess, startService } from '../support/cli.ts';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog } from '../support/mirror.ts';
import { filled } from '../support/place.ts';

/*
 * litestream itself is not installed here. This program does to the mirror what litestream documents that it does: it has
 * two tables of its own, keeps a read transaction open, moves the WAL into the file by itself, and copies the file and
 * then its WAL while another process writes.
 */
const REPLICATOR = `
import sqlite3, subprocess, sys, time
db, replica = sys.argv[1:]
own = sqlite3.connect(db, isolation_level=None, timeout=10)
own.execute('PRAGMA wal_autocheckpoint = 0')
own.execute('CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)')
own.execute('CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER)')
reader = sqlite3.connect(db, isolation_level=None, timeout=10)
def read():
    own.execute('INSERT INTO _litestream_seq VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET seq = seq + 1')
    reader.execute('BEGIN')
    reader.execute('SELECT count(*) FROM _litestream_seq').fetchone()
read()
for turn in range(40):
    time.sleep(0.1)
    if turn % 10 != 9: continue
    reader.execute('ROLLBACK')
    own.execute('PRAGMA wal_checkpoint(%s)' % ('PASSIVE' if turn < 20 else 'RESTART')).fetchone()
    read()
# In a process of its own: closing the file in this one would end its locks.
subprocess.run(['cp', db, replica], check=True)
time.sleep(1)
subprocess.run(['cp', db + '-wal', replica + '-wal'], check=True)
print('copied', flush=True)
sys.stdin.read()
`;

it.skipIf(!sqliteToolsAvailable)(
  'a program that replicates the WAL as litestream does leaves the daemon alone, and its copy can be restored',
  { tags: ['slow'] },
  async () => {
    const source = await filled({ items: 500, churnPerSecond: 50 });
    const { directory, db } = source;
    const settings = { ...source.settings, CATCHWORD_DELTA_CRON: '* * * * * *', CATCHWORD_FULL_CRON: 'off' };
    const daemon = startService(['daemon'], { ...settings, LOG_LEVEL: 'info' }, directory);
    await daemon.shows('run complete');
    const program = join(directory, 'replicate.py');
    writeFileSync(program, REPLICATOR);
    const replica = join(directory, 'replica.db');
    const replicator = startProcess(['/usr/bin/python3', program, db, replica], {}, directory);
    onTestFinished(() => void replicator.child.kill('SIGKILL'));
    await replicator.shows('copied');
    const last = (path: string) => query<{ seq: number }>(path, 'SELECT max(seq) AS seq FROM changes')[0]?.seq ?? 0;
    const copied = last(replica);
    expect(copied).toBeGreaterThan(500);
    await expect.poll(() => last(db)).toBeGreaterThan(copied);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    expectExactLog(db);
    expect(await run(['restore', replica], settings, directory)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('MIRROR_BUSY'),
    });
    replicator.child.stdin?.end();
    expect(await replicator.ended).toMatchObject({ code: 0, stderr: '' });
    const saved = catalogOf(replica);
    expect(await run(['restore', replica], settings, directory)).toMatchObject({ code: 0 });
    expect(catalogOf(db)).toEqual(saved);
    expect(expectExactLog(db)).toBe(copied);
    expect(await load(settings, 'delta')).toMatchObject({ kind: 'full', state: 'complete' });
    expectExactLog(db);
  },
);
