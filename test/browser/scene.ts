import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@catchword/base/clock';
import { startTogether, stopAll } from '@catchword/base/lifecycle';
import { createLog } from '@catchword/base/log';
import { startRawSource } from '@catchword/testing/raw-source';
import { freePort } from '@catchword/testing/server';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import type { Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { startDaemon } from '../../src/cli/roles/roles.ts';
import { effectiveSettings } from '../../src/operate/effective-settings.ts';
import { load } from '../support/load.ts';
import { settingsFor } from '../support/mirror.ts';

const IMAGES = fileURLToPath(new URL('../../docs/images/', import.meta.url));

/** Whether to write the pictures of the documents. */
const shooting = process.env.CATCHWORD_SCREENSHOTS !== undefined;

export async function shoot(page: Page, name: string): Promise<void> {
  if (shooting) await page.screenshot({ path: `${IMAGES}${name}.png` });
}

const PATHS = [
  '/',
  '/runs',
  '/runs/2',
  '/rejected',
  '/products',
  '/changes',
  '/sinks',
  '/sinks/shop',
  '/problems',
  '/actions',
  '/system',
];

/** Writes a picture of each page into the folder that CATCHWORD_PICTURES names: wide and narrow, in light and dark. */
export async function shootAll(page: Page, url: string): Promise<void> {
  const folder = process.env.CATCHWORD_PICTURES;
  if (folder === undefined) return;
  for (const path of PATHS) {
    for (const [form, width, height] of [
      ['desktop', 1280, 900],
      ['phone', 390, 844],
    ] as const) {
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme });
        await page.goto(`${url}${path}`);
        const name = path === '/' ? 'overview' : path.slice(1).replaceAll('/', '-');
        await page.screenshot({ path: join(folder, `${name}-${form}-${colorScheme}.png`), fullPage: true });
      }
    }
  }
}

/** Asks until the answer fits. */
export async function until(address: string, fits: (text: string) => boolean): Promise<void> {
  while (!fits(await (await fetch(address)).text())) await systemClock.sleep(100);
}

/** Starts a daemon in this process, until the test ends. @returns its address */
export async function startDaemonHere(settings: Record<string, string>): Promise<string> {
  const port = await freePort();
  const environment = { ...settings, CATCHWORD_HTTP_PORT: `${port}` };
  const config = checkedSettings(environment, 'source');
  const effective = effectiveSettings({ environment, fromDotEnv: new Set() });
  const services = await startTogether(async (started) => {
    await startDaemon({ config, clock: systemClock, log: createLog('fatal'), effective }, started);
    return started;
  });
  onTestFinished(() => stopAll(services));
  return `http://127.0.0.1:${port}`;
}

/** Markup that would set `window.hacked`, or open a dialog, in each place where text can become code. */
export const HOSTILE = {
  script: '<script>window.hacked=1;alert(1)</script>',
  attribute: `"'><img src=x onerror="window.hacked=1">`,
  address: 'javascript:alert(1)',
  ending: '</textarea></title></section></main><svg onload=alert(1)>',
  entity: '&lt;b&gt;&amp;quot;&#0;\u202ereversed\u2066',
  long: `${'W'.repeat(300)} ${'w'.repeat(300)}`,
};

function product(vbid: string, title: string): Buffer {
  const { script, attribute, address, ending } = HOSTILE;
  const identifiers = { print_isbn: attribute, e_isbn: script };
  const links = { cover_image: address };
  const prices = [{ type: script, currency: attribute, value: '1' }];
  return Buffer.from(
    JSON.stringify({
      vbid,
      title,
      subtitle: ending,
      contributors: [{ name: script }, { name: ending }],
      publisher: attribute,
      identifiers,
      resource_links: links,
      variants: [{ sku: script, duration: ending, prices }],
      [script]: { [attribute]: [address] },
    }),
  );
}

function products(count: number, version: string): Buffer[] {
  const texts = Object.values(HOSTILE);
  const text = (n: number): string => texts[n % texts.length] ?? '';
  return Array.from({ length: count }, (_, n) =>
    product(`${n}${n < 40 ? text(n).slice(0, 200) : ''}`, version + text(n)),
  );
}

/**
 * Starts a daemon whose mirror has everything that a page can show, and whose service is hostile: products with markup in
 * every field, their changes, rejected items, a run that holds removals, a sink.
 */
export async function hostileDaemon(more: Record<string, string> = {}) {
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  const rejected = Buffer.from(JSON.stringify({ vbid: '', title: HOSTILE.script, [HOSTILE.attribute]: 1 }));
  const source = await startRawSource([rejected, ...products(400, '')]);
  const settings = settingsFor(source.url, db, {
    CATCHWORD_PER_PAGE: '50',
    CATCHWORD_REMOVAL_LIMIT: '0',
    CATCHWORD_FULL_CRON: 'off',
    CATCHWORD_DELTA_CRON: 'off',
    CATCHWORD_SINK_FILE: `jsonl:${join(directory, 'changes.jsonl')}`,
    ...more,
  });
  await load(settings, 'full');
  source.items = [...products(250, 'changed '), ...products(380, '').slice(250)];
  await load(settings, 'full');
  return { url: await startDaemonHere(settings), settings, source, directory, db };
}
