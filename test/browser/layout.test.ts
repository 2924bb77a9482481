// The checks do not depend on the fonts of a machine: no overflow, no hidden text, colours from the palette,
// and contrast accepted by axe. Pixels are compared only within one run, with and without scripts.
// `SHOTS=<folder>` keeps the screenshots.
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import { createControlledServer } from '../support/demo-control.js';
import { describeInBrowser, keepScreenshot } from '../support/browser.js';
import { type Proxy, startProxy } from '../support/proxy.js';

const WIDTHS = [320, 768, 1280];
const BACKGROUNDS = { light: 'rgb(244, 246, 248)', dark: 'rgb(15, 20, 25)' } as const;
const SCHEMES = ['light', 'dark'] as const;

const BRANDING = {
  PAGE_TITLE: 'Persistent identifiers of the University Library of Exampletown',
  PAGE_FOOTER_LINKS: JSON.stringify([
    { text: 'Imprint', url: 'https://example.org/imprint' },
    { text: 'Privacy', url: 'https://example.org/privacy' },
    { text: 'Contact', url: 'mailto:persistent-identifiers@library.exampletown.example.org' },
  ]),
};

/** Long words, all kinds of data and different permissions. */
const WIDE = [
  textValue(1, 'URL', `https://example.org/${'long/'.repeat(60)}`),
  textValue(2, 'X'.repeat(90), 'y'.repeat(500)),
  { ...textValue(3, 'DESC', 'for everyone'), permissions: '1111', ttl: 100_000 },
  {
    index: 100,
    type: 'HS_ADMIN',
    data: { format: 'admin', value: { handle: '0.NA/21.T11998', index: 200, permissions: '000011110001' } },
  },
];

interface Place {
  path: string;
  isFailing?: boolean;
  /** Whether the page is on the admin listener. */
  isAdmin?: boolean;
}

const PAGES: Readonly<Record<string, Place>> = {
  front: { path: '/' },
  record: { path: '/21.T11998/DEMO?noredirect' },
  'wide-record': { path: '/21.T11998/wide?noredirect' },
  missing: { path: `/21.T11998/${'missing'.repeat(20)}` },
  foreign: { path: '/20.500.12345/x' },
  failure: { path: '/21.T11998/never-read', isFailing: true },
  openapi: { path: '/openapi' },
  status: { path: '/', isAdmin: true },
};

async function startWorld(env: Record<string, string>) {
  const demo = createControlledServer();
  onTestFinished(() => demo.close());
  const { url } = await demo.listen(0);
  demo.put('21.T11998/wide', WIDE);
  return { demo, proxy: await startProxy({ UPSTREAM_URL: url, ...BRANDING, ...env }) };
}

async function adminUrl({ app }: Proxy): Promise<string> {
  const server = createServer(app.admin).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Returns the URL of a page; `isFailing` makes its Handle server fail. */
async function urlOf({ path, isAdmin, isFailing }: Place, env: Record<string, string> = {}): Promise<string> {
  const { demo, proxy } = await startWorld(env);
  if (isFailing === true) demo.fail('reset');
  return (isAdmin === true ? await adminUrl(proxy) : proxy.url) + path;
}

/** Selects elements that overflow the window or hide text, except table headings, SVG, inputs and hidden ones. */
const CUT_OFF = `[...document.body.querySelectorAll('*')]
  .filter((element) => !element.closest('thead, svg, input, [hidden]') && element.getClientRects().length > 0)
  .filter((element) => {
    const { left, right } = element.getBoundingClientRect();
    const hides = getComputedStyle(element).overflowX !== 'visible' && element.scrollWidth > element.clientWidth;
    return left < -0.5 || right > innerWidth + 0.5 || hides;
  })
  .map((element) => element.outerHTML.slice(0, 120))`;

const OPEN_DETAILS = 'for (const one of document.querySelectorAll("details")) one.open = true';
const WIDER_BY = 'document.documentElement.scrollWidth - innerWidth';
const BACKGROUND = 'getComputedStyle(document.body).backgroundColor';

async function assertLayout(page: Page): Promise<void> {
  expect(await page.evaluate(WIDER_BY)).toBeLessThanOrEqual(0);
  expect(await page.evaluate(CUT_OFF)).toEqual([]);
}

describeInBrowser('page layout', (open) => {
  test.each(Object.entries(PAGES))('fits and is readable at every width: %s', async (name, place) => {
    const url = await urlOf(place);
    const { page, findings } = await open();
    await page.goto(url);
    if (place.isAdmin === true) await page.getByText('Healthy').waitFor();
    await page.evaluate(OPEN_DETAILS);
    for (const width of WIDTHS) {
      for (const colorScheme of SCHEMES) {
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme });
        await assertLayout(page);
        expect(await page.evaluate(BACKGROUND)).toBe(BACKGROUNDS[colorScheme]);
        // Dark mode is checked at one width, because colours do not depend on the width.
        if (colorScheme === 'light' || width === WIDTHS[0]) {
          expect(await findings(), `${width} ${colorScheme}`).toEqual([]);
        }
        await keepScreenshot(page, `${name}-${width}-${colorScheme}`);
      }
    }
  });

  test.each(['#000', '#6b6b6b', '#c00', '#00695c'])(
    'is readable with the accent colour %s',
    async (accent) => {
      const { proxy } = await startWorld({ PAGE_ACCENT_COLOR: accent });
      const { page, findings, complaints } = await open();
      for (const { path } of [PAGES['record'], PAGES['missing']] as Place[]) {
        await page.goto(proxy.url + path);
        for (const colorScheme of SCHEMES) {
          await page.emulateMedia({ colorScheme });
          expect(await findings()).toEqual([]);
          await keepScreenshot(page, `accent-${accent.slice(1)}-${colorScheme}`);
        }
      }
      // Chromium logs the status of the missing page itself.
      expect(complaints.filter((text) => !text.includes('404'))).toEqual([]);
    },
  );

  test.each(['front', 'missing', 'openapi'])('is identical with and without scripts: %s', async (name) => {
    const url = await urlOf(PAGES[name] as Place);
    const { page: scripted } = await open({ javaScriptEnabled: true });
    const { page: plain } = await open({ javaScriptEnabled: false });
    // Reloads for each comparison, because a screenshot may precede the font layout, and Chromium may keep a
    // rasterisation that differs.
    const screenshotOf = async (page: Page): Promise<Buffer> => {
      await page.goto(url);
      return page.screenshot();
    };
    await expect
      .poll(async () => (await screenshotOf(scripted)).equals(await screenshotOf(plain)))
      .toBe(true);
  });

  test('contains a working retry link after an error', async () => {
    const { demo, proxy } = await startWorld({ UPSTREAM_RETRY_AFTER: '0s' });
    const { page } = await open();
    demo.fail('reset');
    await page.goto(`${proxy.url}/21.T11998/DEMO?noredirect`);
    demo.heal();
    await page.getByRole('link', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Values' }).waitFor();
    expect(new URL(page.url()).search).toBe('?noredirect');
  });
});
