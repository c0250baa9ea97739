import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
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

/** A shop behind a webhook, as CloudEvents and Standard Webhooks ask it to be: it verifies, deduplicates, and applies. */
export interface Receiver {
  readonly url: string;
  readonly secret: string;
  /** What it holds now, by vbid. */
  readonly products: ReadonlyMap<string, Kept>;
  /** What a sender must never do, as far as it was seen; emptied by reading. */
  takeProblems(): string[];
  /** Forgets the ids that it has had, and in which order: the mirror was restored, and gives its numbers again. */
  forget(): void;
  /** From the real time, milliseconds: signatures of another day are refused. */
  setClock(offsetMs: number): void;
  close(): Promise<void>;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

export async function startReceiver(): Promise<Receiver> {
  const webhook = new Webhook(SECRET);
  const products = new Map<string, Kept>();
  /** A hash of the content, by event id. */
  const known = new Map<string, string>();
  /** The highest sequence that was applied, by vbid. */
  const applied = new Map<string, string>();
  let problems: string[] = [];
  let offsetMs = 0;

  /** The package reads the clock of the process, so it is set while it does. */
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
    textOf(request)
      .then((body) => {
        // `catchword doctor` asks whether somebody is here.
        if (request.method !== 'POST') return answer(204);
        if (!isGenuine(body, headersOf(request))) return answer(401);
        apply(body);
        return answer(204);
      })
      .catch((error: unknown) => {
        // The sender was killed while it sent; anything else is not as the documentation says.
        if (!request.complete) return;
        problems.push(`the receiver failed: ${String(error)}`);
        answer(500);
      });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `webhook+http://127.0.0.1:${(server.address() as AddressInfo).port}/catalog#allow=private`,
    secret: SECRET,
    products,
    takeProblems: () => {
      const taken = problems;
      problems = [];
      return taken;
    },
    forget: () => {
      known.clear();
      applied.clear();
    },
    setClock: (ms) => {
      offsetMs = ms;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
