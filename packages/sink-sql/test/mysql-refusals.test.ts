import { mariadbAvailable, useMariadb } from '@catchword/testing/mariadb';
import { describe, expect, it, onTestFinished } from 'vitest';
import { books, configAt, feeding, NEVER } from '../../../test/relay/feeding.ts';
import { mysqlTarget } from '../../../test/relay/targets.ts';

describe.skipIf(!mariadbAvailable)('MariaDB with rules of its own', { tags: ['stores'] }, () => {
  const maria = useMariadb({ settings: ['--log-bin=log', '--binlog-format=STATEMENT', '--server-id=1'] });
  const checkAs = async (user: string, table = 'books') => {
    const sink = await configAt(`mysql://${user}:pw@127.0.0.1:${maria.server.port}/shop?table=${table}`).make();
    try {
      return await sink.check(NEVER);
    } finally {
      await sink.close();
    }
  };

  it('MariaDB with a log of statements gets batches', async () => {
    const { harness, target, config } = await feeding(mysqlTarget(maria.server.port));
    harness.start(config);
    await harness.deliver(books(50, 1));
    await harness.deliver([...books(5, 2), { vbid: 'P9', body: null }, { vbid: 'P8', body: null }]);
    expect((await target.read()).products).toEqual(harness.living());
    expect(harness.sink().error).toBeNull();
  });

  it.each([
    ['is locked', 'ACCOUNT LOCK', /Unlock the account of this user at the server, or set a new password/],
    [
      'has an expired password',
      'PASSWORD EXPIRE',
      /Unlock the account of this user at the server, or set a new password/,
    ],
    ['must use TLS', 'REQUIRE SSL', /If the server demands TLS, add ssl-mode=REQUIRED to the address/],
  ])('an account of MariaDB that %s is misconfigured, and the error says what to do', async (_, how, message) => {
    await maria.client.query("CREATE OR REPLACE USER it@'%' IDENTIFIED BY 'pw'; GRANT ALL ON shop.* TO it@'%'");
    await maria.client.query(`ALTER USER it@'%' ${how}`);
    await expect(checkAs('it')).rejects.toMatchObject({
      failure: 'misconfigured',
      message: expect.stringMatching(message),
    });
  });

  it('what MariaDB says at a login hides secrets and cannot colour a terminal', async () => {
    const name = '\u001b[31mpass-word';
    await maria.client.query(`CREATE OR REPLACE USER '${name}'@'%' IDENTIFIED BY 'pass-word' ACCOUNT LOCK`);
    const url = `mysql://${encodeURIComponent(name)}:pass-word@127.0.0.1:${maria.server.port}/shop?table=books`;
    const sink = await configAt(url).make();
    onTestFinished(() => sink.close());
    const { message } = await sink.check(NEVER).then(
      () => ({ message: 'it is accepted' }),
      (error: Error) => error,
    );
    expect(message).toMatch(/Unlock the account of this user/);
    expect(message).not.toContain('\u001b');
    expect(message).not.toContain('pass-word');
  });

  it.each(['exists', 'does not exist'])(
    'an account without rights to a database that %s gets the SQL to run',
    async (which) => {
      await maria.client.query("CREATE OR REPLACE USER it@'%' IDENTIFIED BY 'pw'; GRANT ALL ON shop.* TO it@'%'");
      await maria.client.query(`DROP DATABASE IF EXISTS other${which === 'exists' ? '; CREATE DATABASE other' : ''}`);
      await expect(checkAs('it', 'other.books')).rejects.toMatchObject({
        failure: 'misconfigured',
        message: expect.stringMatching(
          /CREATE DATABASE IF NOT EXISTS `other`;?\nCREATE TABLE[\s\S]*GRANT [\s\S]* ON `other`.`books` TO 'it'@'%'/,
        ),
      });
    },
  );
});
