/**
 * An example of the receiver of a webhook sink. The package standardwebhooks checks signatures:
 *
 *   npm install standardwebhooks
 *   WEBHOOK_SECRET=whsec_… PORT=8081 node examples/receive-webhook.mjs
 *   CATCHWORD_SINK_SHOP='webhook+http://127.0.0.1:8081/#allow=private' CATCHWORD_SINK_SHOP_SECRET=whsec_… npx catchword relay
 *
 * The last request may come twice, so handle an event so that a second time does no harm.
 */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { CatchwordError, parseEvent } from 'catchword/events';
import { Webhook } from 'standardwebhooks';

const webhook = new Webhook(process.env.WEBHOOK_SECRET ?? '');

function handle({ data }) {
  switch (data.op) {
    case 'created':
    case 'restored':
      console.log(`${data.vbid}: sell ${data.product.title}`);
      break;
    case 'updated':
      console.log(`${data.vbid}: changed ${data.changed.join(', ')}`);
      break;
    case 'removed':
      console.log(`${data.vbid}: do not sell any more`);
      break;
  }
}

const server = createServer(async (request, response) => {
  try {
    const events = webhook.verify(await text(request), request.headers);
    for (const event of events) handle(parseEvent(event));
    response.writeHead(204).end();
  } catch (error) {
    // 400: catchword parks what is not an event. 401 and 500: it retries.
    const status = error instanceof CatchwordError ? 400 : error?.name === 'WebhookVerificationError' ? 401 : 500;
    response.writeHead(status).end();
  }
});
server.listen(Number(process.env.PORT ?? 8081), '127.0.0.1', () =>
  console.log(`listening on ${server.address().port}`),
);
process.once('SIGTERM', () => server.close());
