import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings } from '@catchword/settings/config';
import { withDotEnv } from '@catchword/settings/environment';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished, vi } from 'vitest';
import { noteSettings, settingDigests } from '../../src/operate/setting-digests.ts';
import { serversOf } from '../../src/report/status-report.ts';
import { openStore } from '../../src/store/store.ts';
import { serve } from '../http/place.ts';
import { get } from '../http/reader.ts';
import { runHere } from '../support/in-process.ts';
import { settingsFor } from '../support/mirror.ts';
import { receiver } from './scene.ts';

/** A mirror whose daemon was started with what `.env` has now. */
function started(env: Record<string, string>) {
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  const file = join(directory, '.env');
  const own = settingsFor('https://catalog.example', db);
  writeFileSync(file, '');
  const write = (more: Record<string, string>) =>
    appendFileSync(
      file,
      Object.entries(more)
        .map(([name, value]) => `${name}='${value}'\n`)
        .join(''),
    );
  write(env);
  const { environment, again } = withDotEnv(own, directory);
  const store = openStore(db, { settings: noteSettings(environment, again) });
  onTestFinished(() => store.close());
  const daemon = store.daemonLease.acquire(Date.now());
  const relay = store.relayLease.acquire(Date.now());
  /** The second renewal tells what the first one let be read. */
  const renew = async () => {
    for (const lease of [daemon, relay, daemon, relay]) {
      lease.renew(Date.now());
      await again();
    }
  };
  const print = async (...args: string[]) => (await runHere(args, own, directory)).stdout;
  return { db, directory, write, renew, print };
}

const SAYS = /the daemon \(process \d+ on .+\) was started with other settings: (.+)\. Restart it, so that these count/;

it('a channel, a sink and a limit that a running daemon was not started with are named wherever they are shown', {
  tags: ['slow'],
}, async () => {
  const { url } = await receiver();
  const here = started({ CATCHWORD_SINK_FILE: 'jsonl:out.jsonl' });
  const commands = [['status'], ['doctor'], ['sink', 'list']];
  for (const command of commands) expect(await here.print(...command)).not.toContain('other settings');
  here.write({
    CATCHWORD_NOTIFY_TEAM: `slack+${url}/hook#allow=private`,
    CATCHWORD_SINK_SHOP: 'jsonl:shop.jsonl',
    CATCHWORD_SINK_FILE_WHERE: 'distributable',
    CATCHWORD_REMOVAL_LIMIT: '3%',
  });
  const names = 'CATCHWORD_NOTIFY_TEAM, CATCHWORD_REMOVAL_LIMIT, CATCHWORD_SINK_FILE, CATCHWORD_SINK_SHOP';
  for (const command of [...commands, ['notify', 'test', 'team']])
    expect(SAYS.exec(await here.print(...command))?.[1], command.join(' ')).toBe(names);
  const status = await here.print('status');
  expect(status).toContain('sink       shop: new, nothing is delivered before you restart the daemon');
  expect(status).toContain('team: slack, no message so far, not used as it is set here before you restart the daemon');
  await here.renew();
  const { web } = await serve(here.db);
  for (const path of ['/', '/sinks'])
    expect((await get(`${web.url}${path}`)).text).toContain(`other settings: ${names}`);
  const { daemon } = JSON.parse((await get(`${web.url}/api/status`)).text) as { daemon: object };
  expect(daemon).toMatchObject({ other_settings: names.split(', ') });
});

it('a setting that a command does not have proves nothing about the daemon', async () => {
  const here = started({ CATCHWORD_SINK_SHOP: 'jsonl:shop.jsonl', CATCHWORD_REMOVAL_LIMIT: '3%' });
  const elsewhere = await runHere(['status'], { CATCHWORD_DB: here.db }, temporaryDirectory());
  expect(elsewhere.stdout).toMatch(/daemon {5}process/);
  expect(elsewhere.stdout).not.toContain('other settings');
});

it('a relay apart from the daemon names each setting that it reads, and no other', () => {
  const db = join(temporaryDirectory(), 'catalog.db');
  const read = ['.env', 'CATCHWORD_REMOVAL_LIMIT', 'CATCHWORD_SINK_SHOP', 'HTTPS_PROXY'];
  const [daemon, relay] = ['keeper', 'relay'].map((host) => {
    const self = { pid: 1, host, boot: null, pidNamespace: null };
    const store = openStore(db, { self, settings: () => ({ settings: {}, changed: [...read, 'CATCHWORD_TIMEZONE'] }) });
    onTestFinished(() => store.close());
    return store;
  });
  daemon?.daemonLease.acquire(Date.now());
  relay?.relayLease.acquire(Date.now());
  const found = relay && serversOf(relay, Date.now());
  expect(found?.relay?.other_settings).toEqual(read);
  expect(found?.daemon?.other_settings).toEqual([
    '.env',
    'CATCHWORD_REMOVAL_LIMIT',
    'CATCHWORD_TIMEZONE',
    'HTTPS_PROXY',
  ]);
});

it('a file of a secret that is gone since the start, or that a command cannot read, is not another setting', async () => {
  const secret = join(temporaryDirectory(), 'secret');
  writeFileSync(secret, 'a word');
  const here = started({
    CATCHWORD_HTTP_TOKEN_FILE: secret,
    CATCHWORD_SINK_SHOP: 'https://shop.example',
    CATCHWORD_SINK_SHOP_SECRET_FILE: secret,
    CATCHWORD_NOTIFY_TEAM_FILE: secret,
  });
  rmSync(secret);
  await here.renew();
  expect(await here.print('status')).not.toContain('other settings');
  here.write({ CATCHWORD_HEARTBEAT_URL_FILE: secret, CATCHWORD_SINK_SHOP_HEADERS_FILE: secret });
  expect(SAYS.exec(await here.print('status'))?.[1]).toBe('CATCHWORD_HEARTBEAT_URL, CATCHWORD_SINK_SHOP');
});

it('a daemon tells its settings while .env cannot be read for ever, and reads no pipe again', async () => {
  const never = noteSettings({}, () => new Promise(() => {}));
  expect([never(), never()]).toEqual(Array(2).fill({ settings: {}, changed: [] }));
  const directory = temporaryDirectory();
  const [file, secret] = [join(directory, '.env'), join(directory, 'secret')];
  execFileSync('mkfifo', [file, secret]);
  const text = `CATCHWORD_REMOVAL_LIMIT=3%\nCATCHWORD_API_KEY_FILE=${secret}`;
  spawn('sh', ['-c', 'echo "$2" > "$0"; echo a-key > "$1"', file, secret, text], { stdio: 'ignore' });
  const { environment, again } = withDotEnv({}, directory);
  const [{ values }] = [readSettings(environment), readSettings(environment)];
  expect(values).toMatchObject({ removalLimit: { percent: 3 }, apiKey: 'a-key' });
  expect(await values.secretAgain?.('apiKey')).toBe('a-key');
  const settings = noteSettings(environment, again);
  settings();
  await again();
  expect(settings().changed).toEqual([]);
});

it('a .env that is changed, removed or no text shows at a later renewal', async () => {
  const directory = temporaryDirectory();
  const file = join(directory, '.env');
  writeFileSync(file, 'CATCHWORD_REMOVAL_LIMIT=3%');
  const { environment, again } = withDotEnv({}, directory);
  const settings = noteSettings(environment, again);
  const told = (names: string[]) => vi.waitFor(() => expect(settings().changed).toEqual(names));
  writeFileSync(file, 'CATCHWORD_REMOVAL_LIMIT=4%');
  await told(['CATCHWORD_REMOVAL_LIMIT']);
  writeFileSync(file, Buffer.from([0xff, 0x00]));
  await told(['.env']);
  rmSync(file);
  await told(['CATCHWORD_REMOVAL_LIMIT']);
});

it.each([
  ['postgres://shop:first-word@db.example/shop?table=books', 'postgres://shop:other-word@db.example/shop?table=books'],
  [
    'smtp://shop:first-word@mail.example?from=a@b.c&to=d@e.f',
    'smtp://shop:other-word@mail.example?from=a@b.c&to=d@e.f',
  ],
  ['smtp://shop:first?word@mail.example?to=d@e.f', 'smtp://shop:other?word@mail.example?to=d@e.f'],
  ['redis://db.example?stream=a&password=first-word', 'redis://db.example?stream=a&password=other-word'],
])('no digest of the address %s is made from its password', (one, other) => {
  const [first, second] = [one, other].map((url) => settingDigests({ CATCHWORD_SINK_SHOP: url }));
  expect(first).toEqual(second);
  const moved = settingDigests({ CATCHWORD_SINK_SHOP: one.replace('example', 'test') });
  expect(moved).not.toEqual(first);
});
