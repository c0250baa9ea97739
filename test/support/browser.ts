import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished } from 'vitest';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The path of a Chromium: CHROMIUM, or the first in PATH. CI fails without one; elsewhere its tests are skipped. */
function findChromium(): string | undefined {
  const { CHROMIUM, PATH = '', CI } = process.env;
  const paths = PATH.split(delimiter).flatMap((directory) => NAMES.map((name) => join(directory, name)));
  const found = (CHROMIUM === undefined ? paths : [CHROMIUM]).find(isProgram);
  if (found === undefined && CI !== undefined) throw new Error('Chromium is needed on CI');
  if (found === undefined) process.stderr.write('Chromium is not installed: tests with it are left out\n');
  return found;
}

const executablePath = findChromium();

export const browserAvailable = executablePath !== undefined;

export interface Visitor {
  readonly page: Page;
  /** Errors of the console (violations of the CSP are among them), of scripts and of requests; dialogs. */
  readonly problems: string[];
  /** Bytes received so far, as they were transferred: headers and compressed bodies. */
  readonly transferred: () => number;
}

/**
 * Starts one browser for the tests of a file.
 * @returns opens a page in a window of its own, with its own cookies. The test fails if the page has problems that the
 *   test does not take out of `problems`.
 */
export function useBrowser(): (options?: BrowserContextOptions) => Promise<Visitor> {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await chromium.launch({
      ...(executablePath !== undefined && { executablePath }),
      args: ['--no-sandbox'],
    });
  });
  afterAll(async () => {
    await browser?.close();
  });

  return async (options = {}) => {
    if (browser === undefined) throw new Error('the browser has not been started');
    const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
    const page = await context.newPage();
    // Like the polls of tests, on a machine that does other things too.
    page.setDefaultTimeout(120_000);
    const problems: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') problems.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => problems.push(`script: ${error.message}`));
    page.on('dialog', (dialog) => {
      problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('requestfailed', (request) => {
      const reason = request.failure()?.errorText ?? '';
      // The browser ends requests when the user goes on to another page.
      if (reason !== 'net::ERR_ABORTED') problems.push(`request: ${reason} ${request.url()}`);
    });
    const session = await context.newCDPSession(page);
    let bytes = 0;
    session.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength;
    });
    await session.send('Network.enable');
    onTestFinished(async () => {
      await context.close();
      if (problems.length > 0) throw new Error(`the page has problems:\n${problems.join('\n')}`);
    });
    return { page, problems, transferred: () => bytes };
  };
}
