import { once } from 'node:events';
import { type RequestListener, type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { createControlledServer } from '../support/demo-control.js';
import { ask } from '../support/ask.js';
import { describeInBrowser, keepScreenshot } from '../support/browser.js';
import { fixed } from '../support/fixed.js';
import { freePort } from '../support/free-port.js';
import { startProxy } from '../support/proxy.js';

const TOKEN = 'a-token-of-the-operator';
const PAGE = '/api/handles/21.T11998/page';

async function listen(listener: RequestListener, port: number): Promise<{ url: string; close: () => void }> {
  const server: Server = createServer(listener).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(close);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close };
}

async function startWorld(env: Record<string, string> = {}) {
  const demo = createControlledServer();
  onTestFinished(() => demo.close());
  const { url } = await demo.listen(0);
  const proxy = await startProxy({ UPSTREAM_URL: url, ...env });
  return { demo, proxy, admin: await listen(proxy.app.admin, await freePort()) };
}

/** Waits for a healthy title, because a busy machine may lag briefly. */
const titleIsHealthy = (page: Page): Promise<void> => expect.poll(() => page.title()).toContain('Healthy');

describeInBrowser('status page in a browser', (open) => {
  test('updates its figures, with no axe, console or CSP findings', async () => {
    const { proxy, admin } = await startWorld();
    const { page, complaints, findings } = await open({ viewport: { width: 1280, height: 900 } });
    await page.goto(admin.url);
    await page.getByText('Healthy').waitFor();
    for (let times = 0; times < 20; times++) await proxy.ask(PAGE);
    proxy.pass(1000);
    await page.getByText('95 %', { exact: true }).waitFor();
    await page.getByText('20 in 1 s').waitFor();
    const row = page.getByRole('row', { name: '20 21.T11998/page' });
    expect(await row.count()).toBe(1);
    const line = await page.locator('#rate-chart .line').getAttribute('d');
    await proxy.ask(PAGE);
    proxy.pass(1000);
    await page.getByText('21 in 2 s').waitFor();
    expect(await page.locator('#rate-chart .line').getAttribute('d')).not.toBe(line);
    await proxy.ask('/api/handles/21.T11998/DEMO');
    proxy.pass(1000);
    const stores = page.locator('#memory-more');
    await expect
      .poll(() => stores.textContent())
      .toMatch(/^1 record, .*\n1 new record, .*\n0 unknown handles, /);
    await titleIsHealthy(page);
    expect(await findings()).toEqual([]);
    expect(complaints).toEqual([]);
    await keepScreenshot(page, 'status');
  });

  test('shows a failing Handle server and its errors in dark mode', async () => {
    const { demo, proxy, admin } = await startWorld(fixed({ upstream: { breaker: { failures: 2 } } }));
    const { page, findings } = await open({ colorScheme: 'dark' });
    demo.fail('reset');
    for (const name of ['a', 'b', 'c']) await ask(proxy.url, `/api/handles/21.T11998/${name}`);
    proxy.pass(1000);
    await page.goto(admin.url);
    await page.getByRole('status').getByText('Handle server failing: serving stale records').waitFor();
    await page.getByText('Circuit open').waitFor();
    expect(await page.getByText(/127\.0\.0\.1.*breaker open/).count()).toBe(1);
    expect(await page.getByRole('row', { name: /circuit breaker open/ }).count()).toBe(1);
    expect(await page.title()).toMatch(/^■ Handle server failing/);
    expect(await findings()).toEqual([]);
    await keepScreenshot(page, 'status-trouble');
  });

  test('reports a lost connection and reconnects', async () => {
    const { proxy, admin } = await startWorld();
    const { page, findings } = await open();
    await page.goto(admin.url);
    await page.getByText('Healthy').waitFor();
    admin.close();
    await page.getByRole('status').getByText('Connection lost').waitFor();
    await page.getByText(/Not connected .* figures are/).waitFor();
    expect(await findings()).toEqual([]);
    await keepScreenshot(page, 'status-lost');
    await listen(proxy.app.admin, Number(new URL(admin.url).port));
    await page.getByText('Healthy').waitFor();
    expect(await page.getByText('Live', { exact: true }).count()).toBe(1);
  });

  test('shows four figures and three lists side by side on a desktop', async () => {
    const { admin } = await startWorld();
    const { page } = await open({ viewport: { width: 1280, height: 900 } });
    await page.goto(admin.url);
    await page.getByText('Healthy').waitFor();
    const inFirstRow = async (tiles: string): Promise<number> => {
      const sections = await page.locator(`.${tiles} >> nth=0 >> section`).all();
      const boxes = await Promise.all(sections.map((section) => section.boundingBox()));
      return boxes.filter((box) => box?.y === boxes[0]?.y).length;
    };
    expect([await inFirstRow('figures'), await inFirstRow('lists')]).toEqual([4, 3]);
  });

  test('fits a phone screen, and escapes names', async () => {
    const { proxy, admin } = await startWorld();
    const hostile = `<img src=x onerror="document.title='run'">`;
    await proxy.ask(`/api/handles/21.T11998/${encodeURIComponent(hostile)}`);
    await proxy.ask(`/api/handles/21.T11998/${'long'.repeat(60)}`);
    const { page, complaints, findings } = await open({ viewport: { width: 360, height: 740 } });
    await page.goto(admin.url);
    await page.getByRole('cell', { name: hostile }).first().waitFor();
    const wider = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    expect(wider).toBeLessThanOrEqual(0);
    expect(await page.title()).toContain('handle-resolver-proxy');
    await titleIsHealthy(page);
    expect(await findings()).toEqual([]);
    expect(complaints).toEqual([]);
    await keepScreenshot(page, 'status-phone');
  });

  test('shows rules, limited networks and the clients with the most misses', async () => {
    const { proxy, admin } = await startWorld({
      HTTP_TRUSTED_PROXIES: '127.0.0.1',
      TRAFFIC_ENUMERATION_PER_MINUTE: '3',
      TRAFFIC_RULES: JSON.stringify([{ name: 'bots', match: { userAgent: '*Bot*' }, answer: 403 }]),
    });
    const headers = { 'X-Forwarded-For': '198.51.100.7', 'User-Agent': '<b>guesser</b>' };
    for (const name of ['a', 'b', 'c', 'd'])
      await proxy.ask(`/api/handles/21.T11998/none-${name}`, { headers });
    await proxy.ask(PAGE, { headers: { 'User-Agent': 'SomeBot' } });
    const { page, complaints, findings } = await open({ viewport: { width: 1280, height: 1200 } });
    await page.goto(admin.url);
    for (const row of ['4 198.51.100.0/24', '4 <b>guesser</b>', '1 bots: 0 passed, 0 in shadow'])
      await page.getByRole('row', { name: row, exact: true }).waitFor();
    await page.getByRole('row', { name: '198.51.100.0/24 asks for handles that do not exist' }).waitFor();
    expect(await findings()).toEqual([]);
    expect(complaints).toEqual([]);
    await keepScreenshot(page, 'status-traffic');
  });

  test('accepts the token as the password in the browser login dialog', async () => {
    const { admin } = await startWorld({ ADMIN_TOKEN: TOKEN });
    const { page, complaints } = await open({ httpCredentials: { username: 'operator', password: TOKEN } });
    const answer = await page.goto(admin.url);
    expect(answer?.status()).toBe(200);
    await page.getByText('Healthy').waitFor();
    expect(page.url()).toBe(admin.url);
    expect(complaints).toEqual([]);
  });
});
