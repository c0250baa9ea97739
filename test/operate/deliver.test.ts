import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { CHECK_MS } from '../../src/operate/incidents/incident-tracker.ts';
import { channel, hook, inTrouble, MINUTE, mirrorScene, receiver, SECRET } from './scene.ts';

const HOUR = 60 * MINUTE;

type Scene = ReturnType<typeof mirrorScene>;

/** Lets time pass in checks, with room for real requests between them, until `condition` holds. */
async function passUntil({ clock }: Scene, condition: () => boolean, limitMs = HOUR, stepMs = CHECK_MS): Promise<void> {
  for (let passed = 0; !condition() && passed < limitMs; passed += stepMs) {
    await clock.pass(stepMs);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(condition()).toBe(true);
}

async function over(scene: Scene): Promise<void> {
  scene.sink('shop', 'running');
  await passUntil(scene, () => scene.store.episodes.open().length === 0, HOUR);
}

it('sends a webhook a signed event when an episode begins and when it ends, and nothing else', async () => {
  const { url, received, events } = await receiver();
  const scene = await inTrouble([hook(url)]);
  await expect.poll(() => received.length).toBe(1);
  await scene.clock.pass(HOUR);
  await over(scene);
  await expect.poll(() => received.length).toBe(2);
  await scene.clock.pass(HOUR);
  const id = `${scene.store.incarnation}:episode:1`;
  const about = {
    topic: 'sink:shop',
    message:
      'Sink shop is stopped. It gets no changes (the receiver answered 410). When the cause is gone: npx catchword sink resume shop',
    began_at: expect.stringMatching(/^2026-11-22T10:00:[03]0\.000Z$/) as string,
    name: 'books',
    host: 'shop-1',
  };
  expect(events()).toEqual([
    { ...about, id: `${id}:began`, type: 'catchword.episode.began', ended_at: null },
    {
      ...about,
      id: `${id}:ended`,
      type: 'catchword.episode.ended',
      message: 'Over: Sink shop is stopped.',
      ended_at: expect.stringMatching(/^2026-11-22T11:/),
    },
  ]);
  for (const { path, headers, body } of received) {
    expect(path).toBe('/secret-path?key=secret-key');
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    new Webhook(SECRET).verify(body, headers as Record<string, string>);
  }
  expect(received.map(({ headers }) => headers['webhook-id'])).toEqual([`${id}:began`, `${id}:ended`]);
});

it('tries again with the same id after a failure, and not before Retry-After', async () => {
  const { url, received } = await receiver((number) =>
    number === 1 ? { status: 429, headers: { 'retry-after': '1800' } } : { status: 200 },
  );
  const scene = await inTrouble([hook(url)]);
  await expect.poll(() => scene.store.episodes.waiting('hook')[0]?.attempts).toBe(1);
  await scene.clock.pass(29 * MINUTE);
  expect(received).toHaveLength(1);
  await passUntil(scene, () => received.length === 2, 3 * MINUTE);
  await expect.poll(() => scene.store.episodes.waiting('hook')).toEqual([]);
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
});

it('tries again after a restart, and sends a message once', async () => {
  let isDown = true;
  const { url, received } = await receiver(() => ({ status: isDown ? 503 : 204 }));
  const scene = await inTrouble([hook(url)]);
  await expect.poll(() => scene.store.episodes.waiting('hook')[0]?.attempts).toBeGreaterThan(0);
  await scene.stop();
  isDown = false;
  scene.start([hook(url)]);
  await passUntil(scene, () => scene.store.episodes.waiting('hook').length === 0);
  const delivered = received.length;
  await scene.clock.pass(HOUR);
  expect(received).toHaveLength(delivered);
});

it('sends one message about an episode that was over before its first message could be delivered', async () => {
  let isDown = true;
  const { url, received } = await receiver(() => ({ status: isDown ? 500 : 204 }));
  const slack = channel('team', `slack+${url}/services/T0/B0/secret#allow=private`);
  const scene = await inTrouble([slack]);
  await passUntil(scene, () => received.length >= 1);
  await over(scene);
  await expect.poll(() => scene.store.episodes.waiting('team').some(({ attempts }) => attempts > 0)).toBe(true);
  isDown = false;
  const failed = received.length;
  await passUntil(scene, () => scene.store.episodes.waiting('team').length === 0);
  expect(received.length - failed).toBeLessThanOrEqual(2);
  const { text } = JSON.parse(received.at(-1)?.body ?? '') as { text: string };
  expect(text).toMatch(/^Over: Sink shop is stopped\.\nIt began 2026-11-22 10:00:\d\d UTC and ended .* UTC \(.*\)\./);
  expect(text).toContain('The message about the beginning could not be delivered earlier.');
  await scene.clock.pass(HOUR);
  expect(scene.store.episodes.channels()).toMatchObject([{ channel: 'team', waiting: 0, givenUp: 0, error: null }]);
});

it('sends one message about 30 sinks that stop at once', async () => {
  const { url, received, events } = await receiver();
  const chat = await receiver();
  const scene = mirrorScene();
  scene.start([hook(url), channel('team', `slack+${chat.url}/#allow=private`)]);
  for (let sink = 1; sink <= 30; sink++) scene.sink(`s${sink}`, 'stopped');
  await scene.clock.pass(2 * MINUTE);
  await expect.poll(() => [received.length, chat.received.length]).toEqual([1, 1]);
  expect(JSON.parse(received[0]?.body ?? '')).toMatchObject({ type: 'catchword.episodes' });
  expect(new Set(events().map(({ topic }) => topic)).size).toBe(30);
  expect(chat.received[0]?.body).toContain('… and 10 messages more');
  await scene.clock.pass(HOUR);
  expect(received).toHaveLength(1);
});

it('lets no channel wait for one that does not answer, and stops without waiting for it', async () => {
  const silent = await receiver(() => null);
  const { url, received } = await receiver();
  const scene = await inTrouble([hook(silent.url, 'a', '&timeout=110'), hook(url, 'b')]);
  await expect.poll(() => [silent.received.length, received.length]).toEqual([1, 1]);
  await over(scene);
  await passUntil(scene, () => received.length === 2, HOUR);
  expect(silent.received).toHaveLength(1);
  await scene.stop();
  // What was interrupted is tried again by the next process.
  expect(scene.store.episodes.waiting('a')).toHaveLength(2);
});

it('gives a message up after a day, and says so', { tags: ['slow'] }, async () => {
  const { url, received } = await receiver(() => ({ status: 500 }));
  const scene = await inTrouble([hook(url)]);
  const isOver = (): boolean => scene.store.episodes.waiting('hook').length === 0;
  await passUntil(scene, isOver, 30 * HOUR, 10 * MINUTE);
  const tries = received.length;
  expect(tries).toBeLessThan(400);
  expect(scene.clock.now() - (scene.store.episodes.open()[0]?.beganAt ?? 0)).toBeGreaterThan(24 * HOUR);
  expect(scene.lines.at(-1)).toMatchObject({
    level: 50,
    msg: 'notification given up',
    channel: 'hook',
    topic: 'sink:shop',
  });
  expect(scene.store.episodes.channels()).toMatchObject([
    { waiting: 0, givenUp: 1, error: 'the receiver answered 500' },
  ]);
  await scene.clock.pass(HOUR);
  expect(received).toHaveLength(tries);
});

it('gives a message up a day after its first try although the daemon was restarted meanwhile', {
  tags: ['slow'],
}, async () => {
  const { url, received } = await receiver(() => ({ status: 500 }));
  const scene = await inTrouble([hook(url)]);
  const isOver = (): boolean => scene.store.episodes.waiting('hook').length === 0;
  for (let restart = 1; restart <= 3; restart++) {
    const tries = received.length;
    for (let hour = 1; hour <= 7; hour++)
      await passUntil(scene, () => received.length > tries + hour, 2 * HOUR, 20 * MINUTE);
    await scene.stop();
    scene.start([hook(url)]);
  }
  const since = scene.clock.now();
  await passUntil(scene, isOver, 30 * HOUR, 10 * MINUTE);
  expect(scene.clock.now() - since).toBeLessThan(23 * HOUR);
});

it('a channel that is added to a problem of two days is tried for a day', { tags: ['slow'] }, async () => {
  const { url, received } = await receiver(() => ({ status: 500 }));
  const scene = await inTrouble([]);
  await scene.stop();
  await scene.clock.pass(48 * HOUR);
  scene.completed();
  scene.start([hook(url)]);
  await passUntil(scene, () => received.length > 10, 30 * HOUR, 10 * MINUTE);
  expect(scene.store.episodes.channels()).toMatchObject([{ waiting: 1, givenUp: 0 }]);
  const isOver = (): boolean => scene.store.episodes.waiting('hook').length === 0;
  await passUntil(scene, isOver, 30 * HOUR, 10 * MINUTE);
});

it('a message that waited for two days because no daemon ran is tried for a day', async () => {
  let status = 500;
  const { url, received } = await receiver(() => ({ status }));
  const scene = await inTrouble([hook(url)]);
  await over(scene);
  await scene.stop();
  await scene.clock.pass(48 * HOUR);
  scene.completed();
  const tries = received.length;
  scene.start([hook(url)]);
  await passUntil(scene, () => received.length > tries + 2, 6 * HOUR, 10 * MINUTE);
  status = 200;
  await passUntil(scene, () => scene.store.episodes.waiting('hook').length === 0, HOUR, 10 * MINUTE);
  expect(scene.store.episodes.channels()).toMatchObject([{ waiting: 0, givenUp: 0, error: null }]);
});

it('gives a message up at once if the receiver is gone', async () => {
  const { url, received } = await receiver(() => ({ status: 410 }));
  const scene = await inTrouble([hook(url)]);
  await expect.poll(() => scene.store.episodes.channels()[0]?.givenUp).toBe(1);
  await scene.clock.pass(HOUR);
  expect(received).toHaveLength(1);
});

it('tells a new channel what is open, and drops what waits for one that was removed', async () => {
  const old = await receiver(() => ({ status: 500 }));
  const { url, events } = await receiver();
  const scene = await inTrouble([hook(old.url, 'old')]);
  await expect.poll(() => scene.store.episodes.waiting('old')[0]?.attempts).toBeGreaterThan(0);
  await scene.stop();
  scene.start([hook(url, 'new')]);
  await expect.poll(() => events().map(({ type }) => type)).toEqual(['catchword.episode.began']);
  expect(scene.store.episodes.waiting('old')).toEqual([]);
});

it('escapes for Slack what would mention everybody or disguise a link', async () => {
  const { url, received } = await receiver();
  const reason = '<!channel> <https://evil.example|Sign in> & \u202e\u001b[31m';
  await inTrouble([channel('team', `slack+${url}/x#allow=private`)], reason);
  await expect.poll(() => received.length).toBe(1);
  const { text } = JSON.parse(received[0]?.body ?? '') as { text: string };
  expect(text).toContain('&lt;!channel&gt; &lt;https://evil.example|Sign in&gt; &amp; \\u202e\\u001b[31m');
  expect(text).toMatch(/^Sink shop is stopped\.\n.*\nSince 2026-11-22 10:00:\d\d UTC\.\n\ncatchword books on shop-1$/);
});

it('a channel does not call a private address unless its address allows it', async () => {
  const { url, received } = await receiver();
  const { port } = new URL(url);
  const config = channel('hook', `webhook+https://127.0.0.1:${port}/secret-path`);
  const named = channel('team', `slack+https://localhost:${port}/secret-path`);
  const scene = await inTrouble([config, named]);
  await expect
    .poll(() => scene.store.episodes.channels().map(({ error }) => error))
    .toEqual([
      expect.stringMatching(/^127\.0\.0\.1 is a private address; append #allow=private/),
      expect.stringMatching(/^localhost is a private address; append #allow=private/),
    ]);
  expect(received).toEqual([]);
});

it('shows no secret of an address in the log or in the mirror', async () => {
  const { url } = await receiver(() => ({ status: 500 }));
  const closed = 'http://127.0.0.1:1';
  const scene = await inTrouble([
    hook(url, 'a'),
    hook(closed, 'b'),
    channel('c', `slack+${url}/services/T0/B0/secret-token#allow=private`),
    channel('d', 'smtp://shop:secret-word@127.0.0.1:1?from=a@shop.example&to=b@shop.example&tls=off'),
  ]);
  await expect.poll(() => scene.store.episodes.channels().filter(({ error }) => error !== null).length).toBe(4);
  const shown = JSON.stringify([scene.lines, scene.store.episodes.channels()]);
  const failing = scene.lines.filter(({ msg }) => msg === 'notification failed, retrying');
  expect(new Set(failing.map((line) => line.channel)).size).toBe(4);
  expect(shown).not.toMatch(/secret|whsec/);
});
