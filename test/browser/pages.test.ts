import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createControlledServer, type ControlledServer } from '../support/demo-control.js';
import { textValue } from '../../src/dev-server/seed.js';
import { describeInBrowser, keepScreenshot } from '../support/browser.js';
import { type Proxy, startProxy } from '../support/proxy.js';

interface World {
  demo: ControlledServer;
  proxy: Proxy;
  /** URL of the object with the handle `21.T11998/here`. */
  objectUrl: string;
}

async function startWorld(env: Record<string, string> = {}): Promise<World> {
  const demo = createControlledServer();
  onTestFinished(() => demo.close());
  const { url } = await demo.listen(0);
  const site = createServer((_req, res) => {
    res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>The object</title>');
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    site.closeAllConnections();
    site.close();
  });
  const objectUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}/object`;
  demo.put('21.T11998/here', [textValue(1, 'URL', objectUrl)]);
  return { demo, proxy: await startProxy({ UPSTREAM_URL: url, ...env }), objectUrl };
}

describeInBrowser('pages in a browser', (open) => {
  test('open the target of a handle entered in the lookup field', async () => {
    const { proxy, objectUrl } = await startWorld();
    const { page, complaints, findings } = await open();
    await page.goto(proxy.url);
    expect(await findings()).toEqual([]);
    await keepScreenshot(page, 'front');
    await page.getByLabel('Handle').fill('hdl:21.T11998/here');
    await page.keyboard.press('Enter');
    await page.waitForURL(objectUrl);
    expect(await page.title()).toBe('The object');
    expect(complaints).toEqual([]);
  });

  test('are skipped by a redirect from the URL of a handle to its target', async () => {
    const { proxy, objectUrl } = await startWorld();
    const { page } = await open();
    await page.goto(`${proxy.url}/21.T11998/here`);
    expect(page.url()).toBe(objectUrl);
  });

  test('show values with links, and copy the handle at the click of a button', async () => {
    const { proxy } = await startWorld();
    const { page, complaints, findings } = await open({
      permissions: ['clipboard-read', 'clipboard-write'],
      viewport: { width: 960, height: 800 },
    });
    await page.goto(proxy.url);
    await page.getByLabel('Handle').fill('21.T11998/DEMO');
    await page.getByRole('button', { name: 'Show the record' }).click();
    await page.waitForURL(/21\.T11998\/DEMO\?noredirect/);
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('21.T11998/DEMO');
    const row = page.getByRole('row', { name: /https:\/\/example\.org\/demo/ });
    expect(await row.getByRole('link').getAttribute('href')).toBe('https://example.org/demo');
    await keepScreenshot(page, 'record');
    await page.getByRole('button', { name: 'Copy handle' }).click();
    await page.getByText('Copied.').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('21.T11998/DEMO');
    expect(await findings()).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test.each([
    ['with the clipboard of the browser', ''],
    ['over plain HTTP, where browsers offer no clipboard', 'delete Navigator.prototype.clipboard'],
  ])('copy the link of a handle %s', async (_how, before) => {
    const { proxy, demo } = await startWorld();
    demo.put('21.T11998/a b', [textValue(1, 'DESC', 'text')]);
    const { page, complaints } = await open({ permissions: ['clipboard-read', 'clipboard-write'] });
    await page.addInitScript({ content: `globalThis.saved = navigator.clipboard; ${before}` });
    await page.goto(`${proxy.url}/21.T11998/a%20b?noredirect`);
    for (const [name, text] of [
      ['Copy link', `${proxy.url}/21.T11998/a%20b`],
      ['Copy handle', '21.T11998/a b'],
    ] as const) {
      await page.getByRole('button', { name }).click();
      await page.getByText('Copied.').waitFor();
      await expect.poll(() => page.evaluate('saved.readText()')).toBe(text);
    }
    expect(complaints).toEqual([]);
  });

  test('lead from a handle with the full stop of its sentence to the handle', async () => {
    const { proxy, objectUrl } = await startWorld();
    const { page, findings } = await open();
    await page.goto(`${proxy.url}/21.T11998/here.`);
    expect(await findings()).toEqual([]);
    await keepScreenshot(page, 'suggestion');
    await page.getByText('Did you mean').getByRole('link').click();
    await page.waitForURL(objectUrl);
  });

  test('show a handle with Arabic letters from left to right', async () => {
    const demo = createControlledServer({ prefixes: ['10.5072'] });
    onTestFinished(() => demo.close());
    const { url } = await demo.listen(0);
    demo.put('10.5072/سجل/abc', [textValue(1, 'DESC', 'سجل')]);
    const proxy = await startProxy({ UPSTREAM_URL: url });
    const { page } = await open();
    await page.goto(`${proxy.url}/10.5072/${encodeURIComponent('سجل')}/abc?noredirect`);
    const leftOf = (from: number, to: number): string =>
      `(() => { const range = document.createRange(); const text = document.getElementById('handle').firstChild;
        range.setStart(text, ${from}); range.setEnd(text, ${to}); return range.getBoundingClientRect().left; })()`;
    const [prefix, suffix] = [
      await page.evaluate<number>(leftOf(0, 7)),
      await page.evaluate<number>(leftOf(12, 15)),
    ];
    expect(prefix).toBeLessThan(suffix);
  });

  test('are printed in light colours, as a table, without buttons', async () => {
    const { proxy } = await startWorld();
    const { page } = await open({ colorScheme: 'dark', viewport: { width: 720, height: 1000 } });
    await page.goto(`${proxy.url}/21.T11998/DEMO?noredirect`);
    await page.emulateMedia({ media: 'print' });
    expect(await page.evaluate('getComputedStyle(document.body).color')).toBe('rgb(27, 31, 36)');
    expect(await page.getByRole('button', { name: 'Copy link' }).isVisible()).toBe(false);
    expect(await page.getByRole('columnheader', { name: 'Changed' }).isVisible()).toBe(true);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    await keepScreenshot(page, 'record-print');
  });

  test('allow the keyboard to reach a call by the contents of the API page', async () => {
    const { proxy } = await startWorld();
    const { page, findings } = await open();
    await page.goto(`${proxy.url}/openapi`);
    expect(await findings()).toEqual([]);
    await keepScreenshot(page, 'openapi');
    const focused = (): Promise<string> => page.evaluate<string>('document.activeElement.textContent.trim()');
    while (!(await focused()).startsWith('GET /api/handles/')) await page.keyboard.press('Tab');
    const call = await focused();
    await page.keyboard.press('Enter');
    await page.waitForURL(/#/);
    const section = page.locator(new URL(page.url()).hash);
    expect(await section.locator('h3').textContent()).toBe(call);
    await expect.poll(async () => (await section.boundingBox())?.y).toBeLessThan(300);
  });

  test('reload a record from the Handle server and link to its JSON', async () => {
    const { proxy, demo } = await startWorld();
    const { page } = await open();
    await page.goto(`${proxy.url}/21.T11998/DEMO?noredirect`);
    demo.put('21.T11998/DEMO', [textValue(1, 'DESC', 'changed at the server')]);
    await page.reload();
    expect(await page.getByText('changed at the server').count()).toBe(0);
    await page.getByRole('link', { name: 'Reload from the Handle server' }).click();
    await page.getByText('changed at the server').waitFor();
    await page.getByRole('link', { name: 'JSON' }).click();
    await page.waitForURL(/\/api\/handles\/21\.T11998\/DEMO/);
    expect(await page.textContent('body')).toContain('changed at the server');
  });

  test('have sufficient contrast in dark mode', async () => {
    const { proxy } = await startWorld();
    const { page, findings } = await open({ colorScheme: 'dark' });
    await page.goto(`${proxy.url}/21.T11998/located?noredirect`);
    expect(await findings()).toEqual([]);
    const back = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    expect(back).toBe('rgb(15, 20, 25)');
    await keepScreenshot(page, 'record-dark');
  });

  test('fit a phone without horizontal scrolling', async () => {
    const { proxy, demo } = await startWorld();
    demo.put('21.T11998/wide', [
      textValue(1, 'URL', `https://example.org/${'long/'.repeat(80)}`),
      textValue(2, 'X'.repeat(90), 'y'.repeat(500)),
    ]);
    const { page, findings } = await open({ viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
    for (const name of ['wide', 'DEMO']) {
      await page.goto(`${proxy.url}/21.T11998/${name}?noredirect`);
      const wider = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect(wider).toBeLessThanOrEqual(0);
      expect(await findings()).toEqual([]);
    }
    await keepScreenshot(page, 'phone');
  });

  test('offer the lookup form for an unknown handle', async () => {
    const { proxy } = await startWorld();
    const { page, complaints, findings } = await open();
    const answer = await page.goto(`${proxy.url}/21.T11998/nobody`);
    expect(answer?.status()).toBe(404);
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('does not exist');
    expect(await page.getByLabel('Handle').inputValue()).toBe('21.T11998/nobody');
    expect(await findings()).toEqual([]);
    // Chromium logs the status of the page itself.
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([]);
    await keepScreenshot(page, 'not-found');
  });

  test('show a warning for a stale record', async () => {
    const { proxy, demo } = await startWorld();
    const { page, findings } = await open();
    const address = `${proxy.url}/21.T11998/short-lived?noredirect`;
    await page.goto(address);
    expect(await page.getByText('does not answer').count()).toBe(0);
    await demo.close();
    proxy.pass(600_000);
    await page.goto(address);
    expect(await page.getByText('The Handle server does not answer').textContent()).toBeTruthy();
    expect(await page.getByText('10 minutes ago').count()).toBe(1);
    expect(await findings()).toEqual([]);
    await keepScreenshot(page, 'stale');
  });

  test('reject a javascript: target without running it', async () => {
    const { proxy, demo } = await startWorld();
    demo.put('21.T11998/script', [
      textValue(1, 'URL', 'javascript:document.title="run"'),
      textValue(
        2,
        'DESC',
        '<img src=x onerror="document.title=\'run\'"><script>document.title="run"</script>',
      ),
    ]);
    const { page, complaints, findings } = await open();
    const answer = await page.goto(`${proxy.url}/21.T11998/script`);
    expect(answer?.status()).toBe(200);
    expect(await page.getByRole('alert').textContent()).toContain('refused');
    expect(await page.locator('a[href^="javascript"]').count()).toBe(0);
    expect(await page.title()).toContain('21.T11998/script');
    expect(await findings()).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test('require JavaScript only for copying', async () => {
    const { proxy } = await startWorld();
    const { page } = await open({ javaScriptEnabled: false });
    await page.goto(`${proxy.url}/21.T11998/DEMO?noredirect`);
    expect(await page.getByRole('button', { name: 'Copy handle' }).isVisible()).toBe(false);
    const link = page.getByRole('link', { name: 'Persistent link' });
    expect(await link.getAttribute('href')).toBe('/21.T11998/DEMO');
    expect(await page.getByRole('row').count()).toBe(6);
    await page.getByRole('link', { name: 'Reload from the Handle server' }).click();
    await page.getByText('Handle server, on request').waitFor();
  });

  test('show the configured title, logo and footer', async () => {
    const logo = `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')}`;
    const { proxy } = await startWorld({
      PAGE_TITLE: 'Example PIDs',
      PAGE_LOGO_URL: logo,
      PAGE_FOOTER: 'Run by Example <Library>',
      PAGE_FOOTER_LINKS: '[{text: About, url: https://example.org/about}]',
    });
    const { page, complaints } = await open();
    await page.goto(proxy.url);
    expect(await page.getByRole('banner').textContent()).toContain('Example PIDs');
    expect(await page.evaluate('document.images[0].naturalWidth')).toBe(9);
    expect(await page.getByRole('contentinfo').textContent()).toContain('Run by Example <Library>');
    const link = page.getByRole('link', { name: 'About' });
    expect(await link.getAttribute('href')).toBe('https://example.org/about');
    expect(complaints).toEqual([]);
  });

  test('allow keyboard access to every control in visual order', async () => {
    const { proxy } = await startWorld();
    const { page } = await open();
    await page.goto(`${proxy.url}/21.T11998/DEMO?noredirect`);
    const reached: string[] = [];
    for (let presses = 0; presses < 6; presses++) {
      await page.keyboard.press('Tab');
      reached.push(await page.evaluate<string>('document.activeElement.textContent.trim()'));
    }
    expect(reached).toEqual([
      'Handle resolver',
      'Open',
      'Copy handle',
      'Copy link',
      'JSON',
      'Reload from the Handle server',
    ]);
  });
});
