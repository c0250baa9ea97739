import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { vi } from 'vitest';
import { z } from 'zod';
import type { Kept } from './stores.ts';

const SECRET = 'whsec_bGlmZS1vZi1hbi1pbnN0YWxsYXRpb24tc2VjcmV0IQ==';

const batch = z.array(
  z.object({
    id: z.string(),
    subject: z.string(),
    sequence: z.string().regex(/^\d{20}$/),
    data: z.object({ vbid: z.string(), product: z.looseObject({}).nullable() }),
  }),
);

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

/** A webhook receiver that follows CloudEvents and Standard Webhooks: it verifies, deduplicates and applies events. */
export async function startReceiver() {
  const webhook = new Webhook(SECRET);
  const products = new Map<string, Kept>();
  /** Hash of the content, by event id. */
  const known = new Map<string, string>();
  /** Highest applied sequence, by vbid. */
  const applied = new Map<string, string>();
  let problems: string[] = [];
  let offsetMs = 0;

  /** Sets the clock of this process during verification, because the package reads that clock. */
  function isGenuine(body: string, headers: Record<string, string>): boolean {
    vi.setSystemTime(Date.now() + offsetMs);
    try {
      webhook.verify(body, headers);
      return true;
    } catch {
      return false;
    } finally {
      vi.useRealTimers();
    }
  }

  function apply(body: string): void {
    for (const { id, subject, sequence, data } of batch.parse(JSON.parse(body))) {
      const hash = createHash('sha256')
        .update(JSON.stringify([subject, sequence, data]))
        .digest('base64');
      const before = known.get(id);
      if (before !== undefined) {
        if (before !== hash) problems.push(`${id} names two contents, the later of ${subject}`);
        continue;
      }
      if ((applied.get(subject) ?? '') > sequence) problems.push(`${id} of ${subject} came after a later change`);
      known.set(id, hash);
      applied.set(subject, sequence);
      if (data.product === null) products.delete(subject);
      else products.set(subject, { seq: Number(sequence), body: JSON.stringify(data.product) });
    }
  }

  const server = createServer((request, response) => {
    const answer = (status: number): void => void response.writeHead(status).end();
    text(request)
      .then((body) => {
        // `catchword doctor` checks that the receiver responds.
        if (request.method !== 'POST') return answer(204);
        if (!isGenuine(body, headersOf(request))) return answer(401);
        apply(body);
        return answer(204);
      })
      .catch((error: unknown) => {
        // The sender was killed while sending; anything else violates the documentation.
        if (!request.complete) return;
        problems.push(`the receiver failed: ${String(error)}`);
        answer(500);
      });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `webhook+http://127.0.0.1:${(server.address() as AddressInfo).port}/catalog#allow=private`,
    secret: SECRET,
    /** Its products, by vbid. */
    products: products as ReadonlyMap<string, Kept>,
    /** Returns and clears the sender's violations. */
    takeProblems: () => {
      const taken = problems;
      problems = [];
      return taken;
    },
    /** Forgets the ids and their order, because a restored mirror uses its numbers again. */
    forget: () => {
      known.clear();
      applied.clear();
    },
    /** Sets the difference from the real time, milliseconds. Signatures of another day are rejected. */
    setClock: (ms: number) => {
      offsetMs = ms;
    },
    close: async (): Promise<void> => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
