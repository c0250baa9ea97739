import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mariadbAvailable, useMariadb } from '@catchword/testing/mariadb';
import { natsAvailable } from '@catchword/testing/nats';
import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { redisAvailable } from '@catchword/testing/redis';
import { S3_KEY, startS3 } from '@catchword/testing/s3';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { useNats, useRedis } from '@catchword/testing/used-servers';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { sinkChecks } from '../../src/contract/checks.ts';
import { fed, fedBefore } from '../relay/feeding.ts';
import { jsonlTarget, postgresTarget, s3Target, webhookTarget } from '../relay/targets.ts';
import { runHere as cli } from '../support/in-process.ts';

/** Tries a store. @returns the exit code, what stderr says, and the reason of each check by `<result> <check>` */
async function tryStore(url: string, settings: Record<string, string> = {}, options: readonly string[] = []) {
  const command = ['sink', 'contract', url, '--json', ...options];
  const { code, stdout, stderr } = await cli(command, settings, temporaryDirectory());
  if (stdout === '') return { code, stderr, checks: {} };
  const { checks } = JSON.parse(stdout) as { checks: readonly Record<'check' | 'result' | 'reason', string | null>[] };
  return { code, stderr, checks: Object.fromEntries(checks.map((one) => [`${one.result} ${one.check}`, one.reason])) };
}

const failures = (checks: Record<string, string | null>) =>
  Object.entries(checks).filter(([check]) => check.startsWith('failed'));

const MODULE = `
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

export function createSink({ url }) {
  const file = url.searchParams.get('file');
  const loses = url.searchParams.get('loses');
  const changes = {
    case: ({ vbid, body }) => [vbid.toLowerCase(), body],
    spaces: ({ vbid, body }) => [vbid.trim(), body],
    accents: ({ vbid, body }) => [vbid.normalize('NFKC'), body],
    digits: ({ vbid, body }) => [vbid, body && JSON.stringify(JSON.parse(body))],
    numbers: ({ vbid, body }) => [vbid, body && body.replace(/"([0-9.]+)"/g, '$1')],
    length: ({ vbid, body }) => [vbid.slice(0, 200), body],
    none: ({ vbid, body }) => [vbid, body],
  };
  const stored = changes[url.searchParams.get('changes') ?? 'none'];
  const read = () => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { mark: null, products: {} });
  return {
    batch: { events: 1_000, chars: 4_000_000 },
    open: async () => read().mark,
    deliver: async (events, mark) => {
      const { products } = read();
      for (const { vbid, op, body } of events) {
        if (op === 'updated' && vbid === loses) continue;
        const [key, text] = stored({ vbid, body });
        if (text === null) delete products[key];
        else products[key] = text;
      }
      writeFileSync(file, JSON.stringify({ mark, products }));
    },
    list: async function* () {
      yield Object.entries(read().products).map(([vbid, body]) => ({ vbid, body }));
    },
    drop: async () => {
      rmSync(file, { force: true });
      return '';
    },
    close: async () => {},
    check: async (_signal, found) => {
      const { mark } = read();
      if (mark !== null) found?.(mark);
      return 'can be written';
    },
  };
}`;

/** A module that keeps products in a file, which it can read back. */
function moduleAt(directory: string, more = '') {
  writeFileSync(join(directory, 'mine.mjs'), MODULE);
  const file = join(directory, 'products.json');
  return { file, url: `module:${join(directory, 'mine.mjs')}?file=${encodeURIComponent(file)}${more}` };
}

describe('the command sink contract', () => {
  it('passes a module that keeps what it gets, and leaves nothing behind', { tags: ['slow'] }, async () => {
    const { file, url } = moduleAt(temporaryDirectory());
    const { code, stderr, checks } = await tryStore(url);
    expect(failures(checks)).toEqual([]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^module .*mine\.mjs: writes products of its own, and removes the store after each check$/m);
    expect(checks).toMatchObject({
      'passed delivers many events and large ones': null,
      'skipped waits while the store is unreachable': 'it needs a store that stops meanwhile',
      'passed the store is removed': null,
    });
    expect(existsSync(file)).toBe(false);
  });

  it('takes an address of any scheme, also without a host, for the module that --module names', {
    tags: ['slow'],
  }, async () => {
    const directory = temporaryDirectory();
    const { file } = moduleAt(directory);
    const address = `shelf:///books?file=${encodeURIComponent(file)}&loses=P7`;
    const { stderr, checks } = await tryStore(address, {}, ['--module', join(directory, 'mine.mjs')]);
    expect(stderr).toMatch(/^module shelf:\/\/\/books: writes products of its own/m);
    expect(checks).toMatchObject({ 'passed the store has no data of others, and can be written': null });
    expect(failures(checks).map(([check]) => check)).toContain('failed resumes after every restart');
    expect(await tryStore(address)).toMatchObject({ code: 2, stderr: expect.stringContaining('CONFIG_INVALID') });
  });

  it('finds that a module loses the changes of a product', { tags: ['slow'] }, async () => {
    const { code, checks } = await tryStore(moduleAt(temporaryDirectory(), '&loses=P7').url);
    expect(code).toBe(1);
    const found = 'products of the store: 1 differ, 0 missing, 0 extra, 59 equal; such as P7';
    expect(checks['failed resumes after every restart']).toBe(found);
    expect(checks['passed the store is removed']).toBe(null);
  });

  it.each(['case', 'spaces', 'accents', 'digits', 'numbers', 'length', 'none'])(
    'finds that a module changes, of keys and numbers: %s',
    async (changes) => {
      const { url } = moduleAt(temporaryDirectory(), `&changes=${changes}`);
      const checks = sinkChecks({
        effectivelyOnce: false,
        prepare: async () => ({ url, verifies: true, remove: async () => {} }),
      });
      const check = checks.find(({ name }) => name.startsWith('keeps keys that are alike apart'));
      const said = (await check?.run().catch(({ message }: Error) => message)) ?? 'nothing';
      expect(said).toMatch(
        changes === 'none'
          ? /^nothing$/
          : /^a key is another one if its case, .* keep their digits: products of the store: .*; such as /,
      );
    },
  );

  it('refuses a module that cannot remove its store', async () => {
    const directory = temporaryDirectory();
    const { url } = moduleAt(directory);
    writeFileSync(join(directory, 'mine.mjs'), MODULE.replace('drop: async', 'close: async'));
    const { code, checks } = await tryStore(url);
    expect(code).toBe(1);
    expect(Object.values(checks)).toEqual([expect.stringContaining('Let the module have a drop()')]);
  });

  it('fails a module that does not close, and prints no secret of its error', async () => {
    const directory = temporaryDirectory();
    const { url } = moduleAt(directory);
    const closes = "close: async () => { throw new Error('no end of hunter2secret'); },";
    writeFileSync(join(directory, 'mine.mjs'), MODULE.replace('close: async () => {},', closes));
    const { code, stderr, checks } = await tryStore(url, { CATCHWORD_CONTRACT_SECRET: 'hunter2secret' });
    expect(code).toBe(1);
    expect(failures(checks)).toContainEqual([expect.anything(), expect.stringContaining('no end of [secret]')]);
    expect(`${stderr}${JSON.stringify(checks)}`).not.toContain('hunter2secret');
    const settings = { CATCHWORD_SINK_MINE: url, CATCHWORD_SINK_MINE_SECRET: 'hunter2secret' };
    const { stdout } = await cli(['doctor'], settings, directory);
    expect(stdout).toContain('no end of [secret]');
    expect(stdout).not.toContain('hunter2secret');
  });

  it('refuses a file of another program, and a directory that it may not write', async () => {
    const directory = temporaryDirectory();
    const file = join(directory, 'notes.jsonl');
    writeFileSync(file, 'milk\n');
    const { code, checks } = await tryStore(`jsonl:${file}`);
    expect(code).toBe(1);
    expect(failures(checks)).toHaveLength(1);
    expect(readdirSync(directory)).toEqual(['notes.jsonl']);
  });

  it.each(['', '?rotate=20kB&refused=stop'])(
    'passes files with the options %j, and removes them',
    { tags: ['slow'] },
    async (options) => {
      const directory = temporaryDirectory();
      const { code, checks } = await tryStore(`jsonl:${join(directory, 'try.jsonl')}${options}`);
      expect(failures(checks)).toEqual([]);
      expect(code).toBe(0);
      expect(readdirSync(directory)).toEqual([]);
    },
  );

  it('removes what an earlier try has left', { tags: ['slow'] }, async () => {
    // The mirrors of tests are those of the checks.
    const { target } = await fedBefore(jsonlTarget(), 3);
    const { code, checks } = await tryStore(target.url);
    expect(failures(checks)).toEqual([]);
    expect(code).toBe(0);
  });

  it('passes a bucket of S3, and removes only what it wrote there', { tags: ['slow'] }, async () => {
    const store = await startS3();
    onTestFinished(() => store.stop());
    store.objects.set('books/try/theirs', Buffer.from(''));
    const url = `s3://books/try?endpoint=${store.url}&region=${S3_KEY.region}&every=0s`;
    const secret = { CATCHWORD_CONTRACT_SECRET: `${S3_KEY.id}:${S3_KEY.secret}` };
    expect(await tryStore(url, secret)).toMatchObject({ code: 0, checks: { 'passed the store is removed': null } });
    expect([...store.objects.keys()]).toEqual(['books/try/theirs']);
    const { target } = await fedBefore(s3Target(store), 3);
    const manifest = `${target.prefix}manifest.json`;
    store.objects.set(manifest, Buffer.from(String(store.objects.get(manifest)).replace('"contract', '"theirs')));
    const { checks } = await tryStore(target.url, secret);
    expect(failures(checks)).toEqual([[expect.any(String), expect.stringMatching(/it is removed in the end$/)]]);
  });

  it('tells of a webhook that only its answers were checked', { tags: ['slow'] }, async () => {
    const target = await webhookTarget();
    const url = target.url.replace('/hook?key=of+the+receiver', '/?{secret}');
    const { code, checks } = await tryStore(url, { CATCHWORD_CONTRACT_SECRET: target.secret ?? '' });
    await target.remove();
    expect(failures(checks)).toEqual([]);
    expect(code).toBe(0);
    expect(checks['skipped the store has what was delivered']).toMatch(/^this kind has no list\(\)/);
    expect(checks['passed the store is removed']).toBe('what the receiver made of the requests stays');
  });

  it.each(['postgres://shop:hunter2secret@127.0.0.1/shop', 'nats://hunter2secret@127.0.0.1'])(
    'takes no secret from the command line: %s',
    async (url) => {
      const { code, stderr } = await tryStore(url);
      expect(code).toBe(2);
      expect(stderr).toContain('CATCHWORD_CONTRACT_SECRET');
      expect(stderr).not.toContain('hunter2secret');
    },
  );

  it('says which option of the address is meant, before it checks anything', async () => {
    const { code, stderr, checks } = await tryStore('jsonl:try.jsonl?rotat=20kB');
    expect({ code, checks }).toEqual({ code: 2, checks: {} });
    const hint = expect.stringMatching(/^Options are: .*rotate.* Did you mean rotate\?$/);
    const message = 'URL: the address has an unknown option';
    expect(JSON.parse(stderr.trim().split('\n').at(-1) ?? '')).toEqual({
      error: { code: 'CONFIG_INVALID', message, hint },
    });
  });

  it('says which variable {secret} needs', async () => {
    const { code, stderr } = await tryStore('redis://:{secret}@127.0.0.1?stream=try');
    expect(code).toBe(2);
    expect(stderr).toContain('CATCHWORD_CONTRACT_SECRET is not set');
  });

  describe.skipIf(!postgresAvailable)('with PostgreSQL', { tags: ['stores'] }, () => {
    const postgres = usePostgres();
    const tables = async () => {
      const text = `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`;
      return (await postgres.client.query<{ name: string }>(text)).rows.map(({ name }) => name);
    };

    it('passes a table, and removes all but the table that sinks share', { tags: ['slow'] }, async () => {
      const url = `postgres://postgres:{secret}@127.0.0.1:${postgres.port}/postgres?table=try`;
      const { code, checks } = await tryStore(url, { CATCHWORD_CONTRACT_SECRET: 'hunter2secret' });
      expect(failures(checks)).toEqual([]);
      expect(code).toBe(0);
      expect(checks).not.toHaveProperty('skipped the store has what was delivered');
      expect(checks['passed the store is removed']).toMatch(/catchword_cursor.* stays$/);
      expect(await tables()).toEqual(['catchword_cursor']);
      expect((await postgres.client.query('SELECT FROM catchword_cursor')).rowCount).toBe(0);
    });

    it('refuses a table that another mirror feeds', async () => {
      const { target } = await fed(postgresTarget(postgres.port), 3);
      await postgres.client.query("UPDATE catchword_cursor SET incarnation = 'of a shop'");
      const { code, checks } = await tryStore(target.url);
      expect(code).toBe(1);
      expect(Object.values(checks)).toEqual([expect.stringContaining('has data that is not of an earlier try')]);
      expect((await target.read()).products.size).toBe(3);
    });

    it('refuses a table whose position is missing', async () => {
      const { target } = await fed(postgresTarget(postgres.port), 3);
      await postgres.client.query('DELETE FROM catchword_cursor');
      expect(Object.values((await tryStore(target.url)).checks)).toEqual([
        expect.stringContaining('Name one that need not exist'),
      ]);
      expect((await target.read()).products.size).toBe(3);
    });
  });

  describe.skipIf(!mariadbAvailable)('with MariaDB', { tags: ['stores'] }, () => {
    const maria = useMariadb();

    it('passes a table of MariaDB by comparing it, and removes all but the table of cursors', {
      tags: ['slow'],
    }, async () => {
      const { code, checks } = await tryStore(`mysql://root@127.0.0.1:${maria.server.port}/shop?table=try`);
      expect(failures(checks)).toEqual([]);
      expect(code).toBe(0);
      expect(checks).not.toHaveProperty('skipped the store has what was delivered');
      expect(await maria.client.query('SHOW TABLES')).toEqual([{ Tables_in_shop: 'catchword_cursor' }]);
      expect(await maria.client.query('SELECT * FROM catchword_cursor')).toEqual([]);
    });
  });

  describe.skipIf(!redisAvailable)('with Redis', { tags: ['stores'] }, () => {
    const redis = useRedis();
    beforeAll(async () => {
      await redis.client.config('SET', 'requirepass', 'hunter2secret');
      await redis.client.auth('hunter2secret');
    });

    it('passes a stream with a password from a variable, and removes it', { tags: ['slow'] }, async () => {
      const url = `redis://:{secret}@127.0.0.1:${redis.server.port}?stream=try`;
      const { code, checks, stderr } = await tryStore(url, { CATCHWORD_CONTRACT_SECRET: 'hunter2secret' });
      expect(failures(checks)).toEqual([]);
      expect(code).toBe(0);
      expect(stderr).not.toContain('hunter2secret');
      expect(await redis.client.keys('*')).toEqual([]);
    });

    it('names the reason of a wrong password, without it', async () => {
      const url = `redis://:{secret}@127.0.0.1:${redis.server.port}?stream=try`;
      const { code, checks } = await tryStore(url, { CATCHWORD_CONTRACT_SECRET: 'hunter3secret' });
      expect(code).toBe(1);
      expect(Object.values(checks)).toEqual([expect.stringMatching(/^Redis: WRONGPASS/)]);
    });
  });

  describe.skipIf(!natsAvailable)('with NATS', { tags: ['stores'] }, () => {
    const nats = useNats();

    it('passes a JetStream stream, and removes it', { tags: ['slow'] }, async () => {
      const { code, checks } = await tryStore(`nats://127.0.0.1:${nats.server.port}?subject=try`);
      expect(failures(checks)).toEqual([]);
      expect(code).toBe(0);
      expect((await nats.manager.getAccountInfo()).streams).toBe(0);
    });
  });
});
