// Runs tests in a real browser (Debian's Chromium) and collects the problems that it reports.
import { existsSync } from 'node:fs';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, type BrowserContextOptions, type Page, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, onTestFinished } from 'vitest';
import { skipWithout } from './programs.js';

const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

const shots = process.env['SHOTS'];

/** Saves a full-page screenshot with `SHOTS=<folder> npm run test:browser`. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
}

export interface Visit {
  page: Page;
  /** Console errors, uncaught exceptions and Content-Security-Policy violations. */
  complaints: string[];
  /** Returns axe's serious and critical findings, one per element. */
  findings: () => Promise<string[]>;
}

export type OpenVisit = (options?: BrowserContextOptions) => Promise<Visit>;

/** Defines a `describe` that needs Chromium, see `skipWithout`. */
export function describeInBrowser(name: string, suite: (open: OpenVisit) => void): void {
  if (existsSync(EXECUTABLE)) {
    describe(name, () => {
      let browser: Browser;
      beforeAll(async () => {
        browser = await chromium.launch({ executablePath: EXECUTABLE, args: FLAGS, timeout: 0 });
      });
      afterAll(() => browser.close());
      suite((options) => openVisit(browser, options));
    });
  } else {
    skipWithout('chromium', name, () => {
      describe.skip(name, () => {
        suite(() => Promise.reject(new Error('no browser')));
      });
    });
  }
}

async function openVisit(browser: Browser, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext(options);
  // Disables Playwright's timeout, because the test timeout applies.
  context.setDefaultTimeout(0);
  onTestFinished(() => context.close());
  if (options.javaScriptEnabled !== false) await context.addInitScript({ content: axe.source });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  return { page, complaints, findings: () => findingsOn(page) };
}

async function findingsOn(page: Page): Promise<string[]> {
  const { violations } = await page.evaluate<AxeResults>("axe.run({ resultTypes: ['violations'] })");
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
}
