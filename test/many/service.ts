/**
 * Serves the sandbox at an address of its host: the sandbox itself listens on loopback only. Run as `node --import tsx
 * service.ts ADDRESS PORT OPTIONS`, with the options of `startSandbox` as JSON. Prints each host that asked for products
 * once: "asked by ADDRESS".
 */
import { connect, createServer } from 'node:net';
import { startSandbox } from '@catchword/sandbox/sandbox-server';

const [address = '', port = '', options = '{}'] = process.argv.slice(2);
const sandbox = await startSandbox(JSON.parse(options) as Parameters<typeof startSandbox>[0]);
const asked = new Set<string>();

const server = createServer((client) => {
  const upstream = connect(sandbox.port, '127.0.0.1');
  const from = client.remoteAddress ?? '';
  client.on('data', (piece) => {
    if (asked.has(from) || !piece.includes('GET /v4/products?')) return;
    asked.add(from);
    process.stdout.write(`asked by ${from}\n`);
  });
  client.on('error', () => upstream.destroy());
  upstream.on('error', () => client.destroy());
  client.pipe(upstream).pipe(client);
});
server.listen(Number(port), address, () => process.stdout.write('the service answers\n'));
