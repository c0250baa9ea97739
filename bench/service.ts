/**
 * Measures a million credentials and attacks on the XML parser. `npx tsx bench/service.ts [references]`; with 0
 * references, only the attacks.
 */
import { createWriteStream, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { readXml } from '@catchword/xml/read';
import { count, table } from '../src/report/text.ts';
import { CLI, inDirectory, measure, print, serveSandbox } from './process.ts';

const references = Number(process.argv[2] ?? 1_000_000);
const MB = 2 ** 20;

async function credentials(directory: string): Promise<void> {
  const input = join(directory, 'users.csv');
  const file = createWriteStream(input);
  file.write('reference\n');
  for (let user = 1; user <= references; user++) file.write(`user-${String(user).padStart(7, '0')}\n`);
  file.end();
  await finished(file);
  const users = String(references);
  const { url, environment, stop } = await serveSandbox('--no-details', '--items', '1', '--users', users);
  try {
    const out = join(directory, 'result.csv');
    const { wallMs, peakBytes } = await measure([CLI, 'credentials', 'verify', input, '--out', out], environment);
    const requests = (await (await fetch(`${url}/_sandbox/requests`)).json()) as unknown[];
    const verified = readFileSync(out, 'utf8').split('\n').length - 2;
    print(
      `${count(verified)} of ${count(references)} references verified with ${requests.length} requests in ` +
        `${(wallMs / 1_000).toFixed(1)} s, peak ${(peakBytes / 1e6).toFixed(0)} MB`,
    );
  } finally {
    await stop();
  }
}

function entityBomb(): string {
  const entities = Array.from({ length: 10 }, (_, n) => `<!ENTITY e${n + 1} "${`&e${n};`.repeat(10)}">`);
  return `<!DOCTYPE a [<!ENTITY e0 "ha">${entities.join('')}]><a>&e10;</a>`;
}

/** Inputs of the maximum size, with the error at the end, after all the work. */
const LARGE = `<l>${`<c a="${'x'.repeat(190)}"/>`.repeat(29_000)}`;
const CREDENTIALS = `<credentials>${`<credential reference="user-00001" guid="0000-1111-2222-3333" access-token="${'ab12'.repeat(8)}" email=""></credential>`.repeat(20_000)}`;

const ATTACKS: [string, () => string][] = [
  ['entity bomb', entityBomb],
  ['external entity', () => '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'],
  ['nested 20,000 deep', () => '<a>'.repeat(20_000) + '</a>'.repeat(20_000)],
  ['nested without end, 8 MB', () => '<a>'.repeat((8 * MB) / 3)],
  ['100 MB attribute', () => `<a b="${'x'.repeat(100 * MB)}"/>`],
  ['7 MB attribute', () => `<a b="${'x'.repeat(7 * MB)}"/>`],
  ['a million elements', () => '<a/>'.repeat(MB)],
  ['29,000 elements, cut off', () => '<a/>'.repeat(29_000).slice(0, -1)],
  ['5.5 MB in one line, cut off', () => LARGE],
  ['5.5 MB, another end tag', () => `${LARGE}</k>`],
  ['5.5 MB, an attribute twice', () => `${LARGE}<c a="" a=""/></l>`],
  ['5.5 MB, an unknown entity', () => `${LARGE}&xxe;</l>`],
  ['10,000 credentials twice, a tag too many', () => `${CREDENTIALS}<oops></credentials>`],
  ['10,000 credentials twice, then &AMP;', () => `${CREDENTIALS}<a b="&AMP;"/></credentials>`],
  ['10,000 credentials twice, then an invalid space', () => `${CREDENTIALS}<a b\u2028=""/></credentials>`],
  ['10,000 credentials twice, an attribute twice', () => `${CREDENTIALS}<a b="" b=""/></credentials>`],
  ['a name of 60,000 characters', () => `<l><${'n'.repeat(60_000)}></l>`],
  ['an entity of 60,000 characters', () => `<l>&${'n'.repeat(60_000)};</l>`],
];

/** Rejects each input once, without warm-up. */
function attacks(): void {
  const rows = ATTACKS.map(([name, make]) => {
    const text = make();
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    const startedAt = performance.now();
    let refusal = 'TAKEN';
    try {
      readXml(text);
    } catch (error) {
      refusal = (error as Error).message.slice(0, 60);
    }
    const tookMs = performance.now() - startedAt;
    const grown = Math.max(0, process.memoryUsage().heapUsed - before);
    return [name, `${tookMs.toFixed(1)} ms`, `${(grown / 1e6).toFixed(1)} MB`, refusal];
  });
  print(table(['attack', 'rejected in', 'memory', 'why'], rows));
}

attacks();
if (references > 0) await inDirectory(credentials);
