import { readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { readSettings } from '@catchword/settings/config';
import { makeCertificate } from '@catchword/testing/certificate';
import { listen } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { expect, it, onTestFinished } from 'vitest';
import { type ChannelConfig, channelConfig } from '../../src/operate/incidents/channel-config.ts';
import { testMessage } from '../../src/operate/incidents/message-text.ts';
import { run } from '../support/cli.ts';
import { channel, inTrouble, MINUTE } from './scene.ts';

/** Starts a mail server. @returns the mails that it has got, and its port */
async function mailServer(options: SMTPServerOptions = {}) {
  const mails: { from: string; to: string[]; user: string | undefined; isEncrypted: boolean; text: string }[] = [];
  const server = new SMTPServer({
    logger: false,
    authOptional: true,
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, done) => {
      if (password === 'pass/word?') return done(null, { user: username ?? '' });
      const encoded = Buffer.from(`\0${username}\0${password}`).toString('base64');
      return done(new Error(`no: ${password} ${encoded}`));
    },
    onData: (stream, { envelope, user, secure }, done) => {
      let text = '';
      stream.on('data', (piece: Buffer) => {
        text += piece.toString();
      });
      stream.on('end', () => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
        const to = envelope.rcptTo.map(({ address }) => address);
        mails.push({ from, to, user, isEncrypted: secure, text });
        done();
      });
    },
    ...options,
  });
  server.on('error', () => {});
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { mails, port: (server.server.address() as AddressInfo).port };
}

const TO = 'from=catchword@shop.example&to=ops+night@shop.example,boss@shop.example';

function mail(port: number, query = `${TO}&tls=off`, account = ''): ChannelConfig {
  return channel('mail', `smtp://${account}127.0.0.1:${port}?${query}`);
}

async function send(config: ChannelConfig, name: string | undefined = 'books'): Promise<string | null> {
  const message = testMessage('mail', { name, host: 'shop-1' }, Date.now());
  return await (await config.make())(message, new AbortController().signal);
}

/** Why a mail was not sent, as the log shows it. */
async function failure(config: ChannelConfig): Promise<string> {
  return await send(config).then(
    () => 'it was sent',
    (error: unknown) => config.errorText(error),
  );
}

it('mails a message to every address, once when an episode begins and once when it ends', async () => {
  const { mails, port } = await mailServer({ disabledCommands: ['STARTTLS'] });
  const reason = 'the receiver answered 410\r\nBcc: victim@shop.example\r\n\r\n.\r\nQUIT';
  const scene = await inTrouble([mail(port, `${TO}&tls=off`, 'shop:pass%2Fword%3F@')], reason);
  await expect.poll(() => mails.length).toBe(1);
  scene.sink('shop', 'running');
  await scene.clock.pass(7 * MINUTE);
  await expect.poll(() => mails.length).toBe(2);
  const [began, ended] = mails;
  const to = ['ops+night@shop.example', 'boss@shop.example'];
  expect(began).toMatchObject({ from: 'catchword@shop.example', to, user: 'shop', isEncrypted: false });
  expect(began?.text).toMatch(/^Subject: \[catchword books\] Sink shop is stopped\r$/m);
  expect(began?.text).toMatch(/^From: catchword <catchword@shop\.example>\r$/m);
  expect(began?.text).toMatch(/^Auto-Submitted: auto-generated\r$/m);
  expect(began?.text).not.toMatch(/^Bcc/m);
  expect(ended?.text).toMatch(/^Subject: \[catchword books\] Over: Sink shop is stopped\r$/m);
});

it('encrypts with STARTTLS, and rejects a certificate that is not valid', async () => {
  const { mails, port } = await mailServer();
  expect(await failure(mail(port, TO))).toMatch(/^its certificate is not trusted \(.*CERT/);
  expect(mails).toEqual([]);
});

it.each(['smtp', 'smtps'])('encrypts with a certificate that the system trusts (%s)', async (scheme) => {
  const directory = temporaryDirectory();
  const { key, cert } = await makeCertificate(directory);
  const pair = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
  const { mails, port } = await mailServer({ ...pair, secure: scheme === 'smtps' });
  const environment = {
    CATCHWORD_NOTIFY_MAIL: `${scheme}://shop:pass%2Fword%3F@127.0.0.1:${port}?${TO}`,
    NODE_EXTRA_CA_CERTS: cert,
  };
  const ended = await run(['notify', 'test', 'mail'], environment, directory);
  expect(ended).toMatchObject({ code: 0, stdout: `mail (smtp, 127.0.0.1:${port}) has taken a test message\n` });
  expect(mails).toMatchObject([{ user: 'shop', isEncrypted: true }]);
});

it('no mail is sent without encryption to a server that does not offer it', async () => {
  const { mails, port } = await mailServer({ disabledCommands: ['STARTTLS'] });
  expect(await failure(mail(port, TO, 'shop:pass%2Fword%3F@'))).toMatch(/^the connection cannot be encrypted/);
  expect(mails).toEqual([]);
});

it('shows why a sign-in was rejected, without the password', async () => {
  const { port } = await mailServer({ disabledCommands: ['STARTTLS'] });
  const text = await failure(mail(port, `${TO}&tls=off`, 'shop:wrong-word@'));
  expect(text).toMatch(/^the mail server rejected the sign-in: .*535/);
  expect(text).not.toContain('wrong-word');
  expect(text).not.toContain(Buffer.from('\0shop\0wrong-word').toString('base64'));
});

it('a channel reads the file with its address again, so a new password needs no restart', async () => {
  const { mails, port } = await mailServer({ disabledCommands: ['STARTTLS'] });
  const file = join(temporaryDirectory(), 'mail');
  const write = (password: string) => writeFileSync(file, `smtp://shop:${password}@127.0.0.1:${port}?${TO}&tls=off`);
  write('wrong-word');
  const [setting] = readSettings({ CATCHWORD_NOTIFY_MAIL_FILE: file }).values.channels;
  const config = channelConfig(setting ?? expect.unreachable());
  write('other-word');
  const text = await failure(config);
  expect(text).toMatch(/^the mail server rejected the sign-in: .*535/);
  expect(text).not.toMatch(/other-word|wrong-word/);
  write('pass%2Fword%3F');
  await send(config);
  expect(mails).toMatchObject([{ user: 'shop' }]);
});

it('shows what a server answers that refuses the mail', async () => {
  const { port } = await mailServer({
    disabledCommands: ['STARTTLS'],
    onMailFrom: (_address, _session, done) => done(Object.assign(new Error('no such sender'), { responseCode: 550 })),
  });
  expect(await failure(mail(port))).toBe('the mail server answered: 550 no such sender');
});

it('names the addresses that the server refused, and delivers to the others', async () => {
  const { mails, port } = await mailServer({
    disabledCommands: ['STARTTLS'],
    onRcptTo: ({ address }, _session, done) => done(address.startsWith('boss') ? new Error('unknown') : null),
  });
  expect(await send(mail(port))).toBe('the mail server refused boss@shop.example');
  expect(mails.map(({ to }) => to)).toEqual([['ops+night@shop.example']]);
});

it('gives up a server that does not greet, when the daemon stops', async () => {
  let connections = 0;
  const port = await listen(createServer(() => connections++));
  const scene = await inTrouble([mail(port)]);
  await expect.poll(() => connections).toBe(1);
  await scene.stop();
  expect(scene.store.episodes.waiting('mail')).toMatchObject([{ attempts: 0 }]);
});

it('gives a retried message the same Message-ID', async () => {
  let isDown = true;
  const { mails, port } = await mailServer({
    disabledCommands: ['STARTTLS'],
    onMailFrom: (_address, _session, done) => done(isDown ? new Error('later') : null),
  });
  const message = testMessage('mail', { name: undefined, host: 'shop-1' }, Date.now());
  const { signal } = new AbortController();
  const sendAgain = await mail(port).make();
  await expect(sendAgain(message, signal)).rejects.toThrow('later');
  isDown = false;
  await sendAgain(message, signal);
  await sendAgain(message, signal);
  const ids = mails.map(({ text }) => /^Message-ID: (<[0-9a-f]{32}@shop\.example>)\r$/m.exec(text)?.[1]);
  expect(ids).toEqual([expect.any(String), ids[0]]);
});
