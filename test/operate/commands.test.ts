// @module-tag slow
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CatchwordError, messageOf } from '@catchword/base/errors';
import { unknownSettings } from '@catchword/settings/unknown-settings';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { channelConfig } from '../../src/operate/incidents/channel-config.ts';
import { startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { settingsFor } from '../support/mirror.ts';
import { goneSink, MINUTE, mirrorScene, receiver, SECRET } from './scene.ts';

const TEAM = 'slack+https://hooks.slack.example/services/T0/B0/secret-token';

it('notify test sends a signed test message, without a mirror', async () => {
  const { url, received, events } = await receiver();
  const environment = {
    CATCHWORD_NOTIFY_PAGER: `webhook+${url}/hook#allow=private`,
    CATCHWORD_NOTIFY_PAGER_SECRET: SECRET,
    CATCHWORD_NAME: 'books',
  };
  const { code, stdout, stderr } = await runHere(['notify', 'test', 'PAGER'], environment, temporaryDirectory());
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toBe(`pager (webhook, ${url}) has taken a test message\n`);
  expect(events()).toMatchObject([{ type: 'catchword.test', topic: 'test', name: 'books' }]);
  expect(received).toHaveLength(1);
  for (const { body, headers } of received) new Webhook(SECRET).verify(body, headers as Record<string, string>);
});

it('notify test says why a channel did not take the message, and exits 1', async () => {
  const { url } = await receiver(() => ({ status: 403 }));
  const environment = { CATCHWORD_NOTIFY_TEAM: `slack+${url}/services/secret-token#allow=private` };
  const { code, stdout, stderr } = await runHere(['notify', 'test', 'team'], environment, temporaryDirectory());
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toBe(
    `error team (slack, ${url}): the receiver answered 403 [NOTIFY_FAILED]\nhint  Check CATCHWORD_NOTIFY_TEAM, then try again.\n`,
  );
});

it('notify test names the channels that exist, and exits 2', async () => {
  const environment = { CATCHWORD_NOTIFY_TEAM: TEAM, CATCHWORD_NOTIFY_A: TEAM };
  const { code, stderr } = await runHere(['notify', 'test', 'mail'], environment, temporaryDirectory());
  expect(code).toBe(2);
  expect(stderr).toContain('the settings do not have a channel "mail" [USAGE]\nhint  The settings have: a, team.');
  const none = await runHere(['notify', 'test', 'mail'], {}, temporaryDirectory());
  expect(none).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Set one: CATCHWORD_NOTIFY_<NAME>=') as string,
  });
});

it.each([TEAM, 'smtp://host?from=a@b.c&to=a@b.c'])('rejects a secret of %s, which is not signed', async (url) => {
  const environment = { CATCHWORD_NOTIFY_TEAM: url, CATCHWORD_NOTIFY_TEAM_SECRET: SECRET };
  const { code, stderr } = await runHere(['notify', 'test', 'team'], environment, temporaryDirectory());
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringContaining('hint  Remove CATCHWORD_NOTIFY_TEAM_SECRET.') as string,
  });
});

it('settings and doctor show channels without what is secret', async () => {
  const directory = temporaryDirectory();
  const file = join(directory, 'team');
  writeFileSync(file, `${TEAM}\n`);
  const environment = {
    CATCHWORD_NOTIFY_TEAM_FILE: file,
    CATCHWORD_NOTIFY_PAGER: 'webhook+https://pager.example/secret-path?key=secret-key',
    CATCHWORD_NOTIFY_PAGER_SECRET: SECRET,
    CATCHWORD_NOTIFY_PAGER_HEADERS: 'x-key: secret-key',
    CATCHWORD_NOTIFY_MAIL: 'smtp://shop:secret-word@mail.example?from=a@shop.example&to=b@shop.example',
    CATCHWORD_HEARTBEAT_URL: 'https://hc.example/secret-uuid',
  };
  const settings = await runHere(['settings', '--json'], environment, directory);
  expect(settings).toMatchObject({ code: 0, stderr: '' });
  const rows = JSON.parse(settings.stdout) as { name: string; value: string; from: string }[];
  const about = rows.filter(({ name }) => /NOTIFY|HEARTBEAT/.test(name));
  expect(about.map(({ name, value, from }) => [name, value, from])).toEqual([
    ['CATCHWORD_HEARTBEAT_URL', '********', 'environment'],
    ['CATCHWORD_NOTIFY_MAIL', 'smtp mail.example:587', 'environment'],
    ['CATCHWORD_NOTIFY_PAGER', 'webhook https://pager.example', 'environment'],
    ['CATCHWORD_NOTIFY_PAGER_SECRET', '********', 'environment'],
    ['CATCHWORD_NOTIFY_PAGER_HEADERS', '********', 'environment'],
    ['CATCHWORD_NOTIFY_TEAM', 'slack https://hooks.slack.example', 'CATCHWORD_NOTIFY_TEAM_FILE'],
  ]);
  const doctor = await runHere(['doctor'], environment, directory);
  expect(doctor.stdout).toContain(
    'channel    team (slack, https://hooks.slack.example): valid; try it: npx catchword notify test team',
  );
  expect(settings.stdout + doctor.stdout + doctor.stderr).not.toMatch(/secret|whsec/);
});

it.each([
  ['ftp://shop:secret-word@host', 'its value is not a valid address of a channel'],
  ['slack+https://shop:secret-word@host/x', 'the address contains a user name or password'],
  ['slack+http://host/secret-word', 'http without TLS is for private addresses only'],
  ['webhook+https://host/x#batch=secret-word', 'the address has an unknown option'],
  ['webhook+https://host/x#timeout=secret-word', 'the value of timeout is not valid'],
  ['smtp://shop:secret-word@host', 'the value of from is not valid'],
  ['smtp://host?from=a@b.c&to=secret-word', 'the value of to is not valid'],
  ['smtp://host?from=a@b.c&to=a@b.c%0D%0ABcc:secret-word@x.y', 'the value of to is not valid'],
  ['smtp://host?from=a@b.c&to=a@b.c&tls=secret-word', 'the value of tls is not valid'],
  ['smtp://shop:secret/word@host?from=a@b.c&to=a@b.c', 'its value is not a valid address of a channel'],
  ['smtp://shop:12/secret-word@host?from=a@b.c&to=a@b.c', 'the address cannot be parsed'],
  ['smtp://shop:12#secret-word@host?from=a@b.c&to=a@b.c', 'the address cannot be parsed'],
])('doctor and the daemon reject the channel %s', async (url, problem) => {
  const settings = settingsFor('http://127.0.0.1:1', join(temporaryDirectory(), 'x.db'), { CATCHWORD_NOTIFY_X: url });
  const daemon = await runHere(['daemon'], settings, temporaryDirectory());
  expect(daemon.code).toBe(2);
  expect(daemon.stderr).toContain(`CATCHWORD_NOTIFY_X: ${problem}`);
  const doctor = await runHere(['doctor'], { CATCHWORD_NOTIFY_X: url }, temporaryDirectory());
  expect(doctor).toMatchObject({
    code: 1,
    stdout: expect.stringContaining(`CATCHWORD_NOTIFY_X: ${problem}`) as string,
  });
  expect(daemon.stderr + doctor.stdout + doctor.stderr).not.toContain('secret-word');
});

it('no error of a channel shows any piece of a hostile password', async () => {
  const pieces = fc.constantFrom('Wkv', 'Jqh', '8642', '/', '?', '#', '@', ':', '&', '=', '%', '%40', '+', '[');
  await fc.assert(
    fc.asyncProperty(fc.array(pieces, { minLength: 1, maxLength: 6 }), async (parts) => {
      const url = `smtp://shop:Qzx${parts.join('')}@127.0.0.1:1?from=a@shop.example&to=b@shop.example`;
      const shown: string[] = [];
      try {
        const config = channelConfig({ env: 'CATCHWORD_NOTIFY_X', name: 'x', url, secret: undefined });
        shown.push(config.address);
        await config.make();
      } catch (error) {
        shown.push(messageOf(error), error instanceof CatchwordError ? (error.hint ?? '') : '');
      }
      for (const piece of ['Qzx', 'Wkv', 'Jqh', '8642']) expect(shown.join('\n'), url).not.toContain(piece);
    }),
    { numRuns: 300 },
  );
});

it.each([
  ['CATCHWORD_NOTIFY_team', 'Did you mean CATCHWORD_NOTIFY_TEAM?'],
  [
    'CATCHWORD_NOTIFY_TAEM_SECRET',
    'CATCHWORD_NOTIFY_TAEM, which is not set. It is ignored. Did you mean CATCHWORD_NOTIFY_TEAM?',
  ],
  ['CATCHWORD_HEARTBEAT_URI', 'Did you mean CATCHWORD_HEARTBEAT_URL?'],
])('names the setting that was probably meant by %s', (name, text) => {
  const [first = '', ...others] = unknownSettings({ [name]: 'x', CATCHWORD_NOTIFY_TEAM: TEAM });
  expect(first.endsWith(text)).toBe(true);
  expect(others).toEqual([]);
});

it('status shows open problems and the state of each channel', async () => {
  const { url } = await receiver(() => ({ status: 500 }));
  const scene = mirrorScene();
  const { db, clock } = scene;
  const environment = { CATCHWORD_DB: db, CATCHWORD_NOTIFY_TEAM: `slack+${url}/secret-token#allow=private` };
  const before = await runHere(['status'], environment, temporaryDirectory(), { clock });
  expect(before.stdout).toContain('\nchannel    team: slack, no message so far\n');
  scene.start([channelConfig({ env: 'X', name: 'team', url: environment.CATCHWORD_NOTIFY_TEAM, secret: undefined })]);
  scene.sink('shop', 'stopped', 'gone');
  await clock.pass(2 * MINUTE);
  await expect.poll(() => scene.store.episodes.channels()[0]?.error ?? null).not.toBeNull();
  const text = await runHere(['status'], environment, temporaryDirectory(), { clock });
  expect(text.stdout).toMatch(
    /\nchannel {4}team: slack, no message so far, 1 message waiting until .* UTC: the receiver answered 500\n/,
  );
  expect(text.stdout).toMatch(/\nwrong {6}Sink shop is stopped\. It gets no changes \(gone\)\..* \(since .* UTC\)\n/);
  const json = await runHere(['status', '--json'], environment, temporaryDirectory(), { clock });
  expect(JSON.parse(json.stdout)).toMatchObject({
    episodes: [{ topic: 'sink:shop', message: expect.stringContaining('Sink shop is stopped.') as string }],
    channels: [{ name: 'team', kind: 'slack', address: url, delivered_at: null, waiting: 1, given_up: 0 }],
  });
  expect(text.stdout + json.stdout).not.toContain('secret');
});

it('only the active one of two daemons notifies, and the other continues when it takes over', async () => {
  const { directory, settings, events } = await goneSink();
  const first = startService(['daemon'], settings, directory);
  await first.shows('sink is stopped');
  const second = startService(['daemon'], settings, directory);
  await second.shows('standing by');
  await first.shows('notification delivered');
  expect(events()).toMatchObject([{ type: 'catchword.episode.began', topic: 'sink:shop' }]);
  await first.stop('SIGKILL');
  await second.shows('took over');
  expect((await second.stop()).stderr).not.toContain('something is wrong');
  expect(events()).toHaveLength(1);
});
