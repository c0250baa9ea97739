import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type NatsServer, natsAvailable, startNats } from '@catchword/testing/nats';
import { natsOperator } from '@catchword/testing/nats-creds';
import { freePort } from '@catchword/testing/server';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { connect } from '@nats-io/transport-node';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../../src/contract/harness.ts';
import { books, configAt, NEVER, temporaryMirror } from '../../../test/relay/feeding.ts';
import { readableLog } from '../../../test/relay/readable-log.ts';

async function started(config = ''): Promise<NatsServer> {
  const server = await startNats({ config });
  onTestFinished(() => server.stop());
  return server;
}

/** Checks a sink as `catchword doctor` does. */
async function check(url: string): Promise<string> {
  const sink = await configAt(url).make();
  return await sink.check(NEVER);
}

const API = '$JS.API.INFO $JS.API.STREAM.INFO.catalog-products $JS.API.STREAM.MSG.GET.catalog-products';
/** What docs/stores/nats.md lists. */
const RIGHTS = [...API.split(' '), '$JS.API.STREAM.CREATE.catalog-products', 'catalog.products'];

/** A server whose user `shop` may publish to these subjects, and gets answers below `shop.answers`. */
async function limited(publish: readonly string[]): Promise<string> {
  const allowed = publish.map((subject) => JSON.stringify(subject)).join(', ');
  const server = await started(`authorization { users = [ { user: shop, password: pw, permissions: {
    publish: { allow: [${allowed}] }, subscribe: { allow: ["shop.answers.>"] } } } ] }`);
  return `nats://shop:pw@127.0.0.1:${server.port}?inbox_prefix=shop.answers`;
}

describe.skipIf(!natsAvailable)('a user of NATS', { tags: ['stores'] }, () => {
  it.each(RIGHTS)('without the right to %s is misconfigured, and doctor says so', async (right) => {
    const url = await limited(RIGHTS.filter((one) => one !== right));
    const error = { failure: 'misconfigured', message: `NATS: Permissions Violation for Publish to "${right}"` };
    await expect(check(url)).rejects.toMatchObject(error);
    const harness = temporaryMirror();
    const { lines, log } = readableLog();
    harness.change(books(3, 1));
    harness.start(configAt(url), { log });
    // Without a message, the mark is not read.
    if (right.includes('MSG.GET')) return await harness.caughtUp();
    await until('the sink fails', () => lines.some(({ reason }) => String(reason).startsWith('NATS: Permissions')));
    expect(lines.find(({ msg }) => msg === 'sink failed, retrying')).toMatchObject({
      code: 'SINK_MISCONFIGURED',
      reason: error.message,
    });
  });

  it('without the right to its inbox is misconfigured', async () => {
    const url = await limited(RIGHTS);
    await expect(check(url.replace('shop.answers', 'other'))).rejects.toMatchObject({
      failure: 'misconfigured',
      message: expect.stringMatching(/^NATS: Permissions Violation for Subscription to "other\./),
    });
  });

  it('with all rights that the documents list, and none besides, feeds a stream', async () => {
    const url = await limited(RIGHTS);
    expect(await check(url)).toBe(
      'stream catalog-products does not exist; the first delivery creates it; its user has the rights to write it',
    );
    const harness = temporaryMirror();
    await harness.resume(configAt(url), books(3, 1));
    expect(await check(url)).toBe(
      'stream catalog-products exists, with 3 messages; its user has the rights to write it',
    );
  });

  it('with a wrong password is misconfigured', async () => {
    const url = await limited(RIGHTS);
    await expect(check(url.replace(':pw@', ':px@'))).rejects.toMatchObject({ failure: 'misconfigured' });
  });

  it('with a file of credentials feeds a stream', async () => {
    const { config, creds } = natsOperator(temporaryDirectory());
    const { port } = await started(config);
    const harness = temporaryMirror();
    await harness.resume(configAt(`nats://127.0.0.1:${port}?creds=${creds}`), books(3, 1));
    await expect(check(`nats://127.0.0.1:${port}`)).rejects.toMatchObject({ failure: 'misconfigured' });
  });

  it.each([
    ['that does not exist', null, /shop\.creds \(it does not exist, ENOENT\)/],
    ['without credentials', 'nothing', /unable to parse credentials/],
    ['that is a directory, as Docker makes of a missing file', undefined, /EISDIR/],
  ])('with a file %s is misconfigured', async (_name, text, message) => {
    const directory = temporaryDirectory();
    const { config } = natsOperator(directory);
    const { port } = await started(config);
    const creds = join(temporaryDirectory(), 'shop.creds');
    if (text === undefined) mkdirSync(creds);
    else if (text !== null) writeFileSync(creds, text);
    const failed = check(`nats://127.0.0.1:${port}?creds=${creds}`);
    await expect(failed).rejects.toMatchObject({ failure: 'misconfigured', message: expect.stringMatching(message) });
  });

  it('with a damaged seed is misconfigured, and no error has the seed', async () => {
    const directory = temporaryDirectory();
    const { config, creds, seed } = natsOperator(directory);
    const { port } = await started(config);
    writeFileSync(
      creds,
      `-----BEGIN-----\na.b.c\n-----END-----\n\n-----BEGIN-----\n${seed.slice(0, -2)}\n-----END-----\n`,
    );
    const error = await check(`nats://127.0.0.1:${port}?creds=${creds}`).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ failure: 'misconfigured' });
    expect(String(error)).not.toContain(seed.slice(0, 20));
  });
});

describe.skipIf(!natsAvailable)('an address with several NATS servers', { tags: ['stores'] }, () => {
  it('feeds the one that answers', async () => {
    const [server, unused] = [await started(), await freePort()];
    const config = configAt(`nats://127.0.0.1:${unused},127.0.0.1:${server.port}?subject=shop.books`);
    expect(config.address).toBe(`127.0.0.1:${unused},127.0.0.1:${server.port} shop.books`);
    const harness = temporaryMirror();
    await harness.resume(config, books(3, 1));
    const connection = await connect({ servers: `127.0.0.1:${server.port}` });
    onTestFinished(() => connection.close());
    await harness.deliver(books(3, 2));
  });

  it('names no host that is missing or has a port that is not a number', () => {
    expect(() => configAt('nats://a:4222,')).toThrow('the host is missing');
    expect(() => configAt('nats://a:4222,b:port')).toThrow('not a valid sink address');
  });
});
