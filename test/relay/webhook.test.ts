import { execFileSync } from 'node:child_process';
import { lookup } from 'node:dns';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { publicLookup } from '@catchword/base/public-address';
import { listen, serveHttp } from '@catchword/testing/listen';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { books, configAt, feeding, numbers, temporaryMirror } from './feeding.ts';
import { type Reply, webhookTarget } from './targets.ts';

const ok = { status: 204 } as const;

function config(url: string, secret?: string, headers?: string) {
  return sinkConfig({ env: 'CATCHWORD_SINK_HOOK', name: 'hook', url, secret, headers });
}

async function answering(reply: Reply, options = '') {
  return await feeding(webhookTarget(reply, options));
}

it('posts signed batches of CloudEvents', async () => {
  const { harness, target, config: sink } = await feeding(webhookTarget(undefined, '&batch=4'));
  await harness.resume(sink, books(10, 1));
  // The receiver verifies each signature.
  expect(target.events.map(({ sequence }) => Number(sequence))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(target.requests).toHaveLength(3);
  expect(new Set(target.requests.map(({ id }) => id)).size).toBe(3);
});

it('retries a batch with the same id', async () => {
  const { harness, target, config: sink } = await answering((number) => (number === 1 ? { status: 500 } : ok));
  await harness.resume(sink, books(3, 1));
  expect(target.requests.map(({ id }) => id)).toEqual([target.requests[0]?.id, target.requests[0]?.id]);
});

it.each([
  ['3600', 3_600_000],
  ['99999999999', 86_400_000],
])('waits the %s seconds that the receiver asks for, a day at most, unless the sink is resumed', async (asked, ms) => {
  const { harness, config: sink } = await answering((number) =>
    number === 1 ? { status: 503, headers: { 'retry-after': asked } } : ok,
  );
  harness.change(books(3, 1));
  await harness.failed(sink);
  const { errorAt, retryAt } = harness.sink();
  expect((retryAt ?? 0) - (errorAt ?? 0)).toBe(ms);
  harness.store.request(({ sinks }) => sinks.setState(harness.sink().id, 'running'));
  await harness.caughtUp();
});

it('takes the status as confirmation, whatever the body does', async () => {
  let requests = 0;
  const dripping = createServer((request, response) => {
    requests++;
    request.resume();
    response.writeHead(200);
    const timer = setInterval(() => response.write('x'), 50);
    response.on('close', () => clearInterval(timer));
  });
  const port = await listen(dripping);
  const { harness } = await feeding(webhookTarget());
  harness.change(books(3, 1));
  const slow = config(`webhook+http://127.0.0.1:${port}/#allow=private`);
  harness.start({ ...slow, name: 'contract' });
  await harness.caughtUp();
  expect(requests).toBe(1);
});

it('stops if the receiver is gone', async () => {
  const { harness, target, config: sink } = await answering(() => ({ status: 410 }));
  harness.change(books(3, 1));
  await harness.stopped(sink);
  expect(harness.sink().error).toContain('410');
  expect(target.requests).toHaveLength(1);
});

it.each([301, 302, 307, 308])('a webhook does not follow a redirect (%i)', async (status) => {
  const elsewhere = await webhookTarget();
  const { harness, config: sink } = await answering(() => ({ status, headers: { location: elsewhere.url } }));
  harness.change(books(1, 1));
  await harness.failed(sink);
  expect(harness.sink()).toMatchObject({ state: 'running', cursor: 0, error: expect.stringContaining(String(status)) });
  expect(elsewhere.requests).toHaveLength(0);
  await harness.stop();
  await elsewhere.remove();
});

/** Refuses every batch that contains the change `bad`. */
function refusing(bad: number): Reply {
  return (_number, batch) => (batch.some(({ sequence }) => Number(sequence) === bad) ? { status: 422 } : ok);
}

it('finds the refused event, parks it, and delivers the others', async () => {
  const { harness, target, config: sink } = await answering(refusing(37));
  await harness.resume(sink, books(100, 1));
  const delivered = target.events.map(({ sequence }) => Number(sequence));
  expect(delivered).toEqual(numbers(1, 100).filter((seq) => seq !== 37));
  expect(harness.parked()).toMatchObject([{ seq: 37, state: 'refused', reason: 'the receiver answered 422' }]);
  // Batches are halved; events are not sent one by one.
  expect(target.requests.length).toBeLessThan(20);
});

it('parks the refused one of two events that fill a batch', { tags: ['slow'] }, async () => {
  const batches: number[] = [];
  const reply: Reply = (number, batch) => {
    batches.push(batch.length);
    return refusing(2)(number, batch);
  };
  const { harness, target, config: sink } = await answering(reply);
  // Together, their texts have a little less than the 4,000,000 characters of a batch.
  const products = ['P0', 'P1'].map((vbid) => {
    const body = JSON.stringify({ vbid, text: '' });
    return { vbid, body: JSON.stringify({ vbid, text: 'x'.repeat(1_999_610 - body.length) }) };
  });
  await harness.resume(sink, products);
  expect(batches[0]).toBe(2);
  expect(target.events.map(({ subject }) => subject)).toEqual(['P0']);
  expect(harness.parked()).toMatchObject([{ seq: 2, state: 'refused' }]);
});

it('stops before a refused event with refused=stop', async () => {
  const { harness, target, config: sink } = await feeding(webhookTarget(refusing(2), '&refused=stop'));
  harness.change(books(5, 1));
  await harness.stopped(sink);
  expect(harness.sink()).toMatchObject({ cursor: 1, error: expect.stringContaining('event 2 of product P1') });
  expect(target.events.map(({ subject }) => subject)).toEqual(['P0']);
});

it('stops if every event is refused', async () => {
  const { harness, config: sink } = await answering(() => ({ status: 400 }));
  harness.change(books(500, 1));
  await harness.stopped(sink);
  expect(harness.sink().error).toContain('20 events in a row');
  expect(harness.store.sinks.parked(harness.sink().id).length).toBeLessThan(20);
});

it.each([
  'https://127.0.0.1:1/',
  'https://[::1]:1/',
  'https://[::ffff:10.0.0.1]/',
  'https://0x7f.1/',
  'https://localhost:1/',
])('a webhook does not connect to %s', async (address) => {
  const sink = await config(`webhook+${address}`).make();
  await expect(sink.check(AbortSignal.timeout(5_000))).rejects.toThrow('is a private address');
  await sink.close();
});

it('judges the address that the socket connects to', async () => {
  const found = await new Promise<{ message: string }>((resolve) => {
    const check = publicLookup((host) => new Error(`${host} is private`));
    check('localhost', {}, (error) => resolve(error ?? { message: 'connected' }));
  });
  expect(found.message).toContain('localhost is private');
  // The system itself resolves the name.
  const known = await new Promise((resolve) => lookup('localhost', (error) => resolve(error)));
  expect(known).toBeNull();
});

it('a secret of a webhook is 24 to 64 bytes in base64, which the library of Standard Webhooks reads alike', async () => {
  const bytes = fc.uint8Array({ minLength: 20, maxLength: 68 });
  await fc.assert(
    fc.asyncProperty(
      bytes,
      fc.constantFrom('', 'whsec_'),
      fc.constantFrom('', '=', '.', 'x'),
      async (key, prefix, end) => {
        const secret = `${prefix}${Buffer.from(key).toString('base64')}${end}`;
        const made = config('webhook+https://shop.example/', secret).make();
        const isAccepted = await made.then(
          () => true,
          () => false,
        );
        expect(isAccepted).toBe(end === '' && key.length >= 24 && key.length <= 64);
        if (isAccepted) expect(() => new Webhook(secret)).not.toThrow();
      },
    ),
    { numRuns: 300 },
  );
});

it.each(['mysecret', 'correct horse battery staple', 'whsec_dG9vIHNob3J0', 'c2VjcmV0IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXM'])(
  'a webhook refuses the weak or half-decoded secret %s, and says how to make one',
  async (secret) => {
    await expect(config('webhook+https://shop.example/', secret).make()).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: 'CATCHWORD_SINK_HOOK: its secret is not a Standard Webhooks secret',
      hint: expect.stringContaining('echo "whsec_$(openssl rand -base64 32)"') as string,
    });
  },
);

it('the command that the documents name for a new secret of a webhook makes one that it accepts', async () => {
  const command = 'echo "whsec_$(openssl rand -base64 32)"';
  expect(readFileSync('docs/stores/webhook.md', 'utf8')).toContain(command);
  const secret = execFileSync('sh', ['-c', command], { encoding: 'utf8' }).trim();
  await expect(config('webhook+https://shop.example/', secret).make()).resolves.toBeDefined();
});

/** Keeps each request until the test ends. */
async function heard() {
  const requests: { headers: Record<string, string>; body: string }[] = [];
  const address = await serveHttp((request, response) => {
    void text(request).then((body) => {
      requests.push({ headers: request.headers as Record<string, string>, body });
      response.writeHead(204).end();
    });
  });
  return { requests, url: `webhook+${address}/#allow=private` };
}

it.each([' ', ',', ', ', '\n'])('a webhook with two secrets and %j between them signs with both', async (between) => {
  const secrets = ['an old secret, 24 bytes +', 'a new secret, 24 bytes +'].map(
    (one) => `whsec_${Buffer.from(one).toString('base64')}`,
  );
  const { requests, url } = await heard();
  const harness = temporaryMirror();
  await harness.resume(configAt(url, secrets.join(between)), books(2, 1));
  const { headers = {}, body = '' } = requests[0] ?? {};
  expect(headers['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/);
  for (const secret of secrets) expect(new Webhook(secret).verify(body, headers)).toHaveLength(2);
});

it('a webhook sends the headers of its setting, but not instead of its own', async () => {
  const { requests, url } = await heard();
  const harness = temporaryMirror();
  const headers = 'Authorization: Bearer abc:def==\r\n\nx-shop:7\nUser-Agent: shop feed';
  await harness.resume({ ...config(url, undefined, headers), name: 'contract' }, books(1, 1));
  expect(requests[0]?.headers).toMatchObject({
    authorization: 'Bearer abc:def==',
    'x-shop': '7',
    'user-agent': 'shop feed',
    'content-type': expect.stringContaining('cloudevents') as string,
  });
});

it.each([
  ['no colon, s3cret', 1],
  ['A: b\nContent-Type: s3cret', 2],
  ['webhook-id: s3cret', 1],
  ['Host: s3cret', 1],
  ['A: s3cret\na: again', 2],
  ['A:', 1],
  ['A: s3crét', 1],
])('a webhook refuses the header lines %j without repeating them', async (headers, line) => {
  const made = config('webhook+https://shop.example/', undefined, headers).make();
  const error = (await made.catch((thrown: unknown) => thrown)) as Error;
  expect(error.message).toBe(`CATCHWORD_SINK_HOOK: line ${line} of its headers cannot be used`);
  expect(JSON.stringify(error)).not.toContain('s3cr');
});

it('a sink that is not a webhook has no headers', () => {
  const setting = { env: 'CATCHWORD_SINK_X', name: 'x', url: 'jsonl:a.jsonl', secret: undefined, headers: 'A: b' };
  expect(() => sinkConfig(setting)).toThrow('CATCHWORD_SINK_X: only the requests of webhooks have headers');
});
