// The change webhook of the app: signed batches, retried until the receiver acknowledges them.
import { partial } from '../support/partial.js';
import { createHmac } from 'node:crypto';
import request from 'supertest';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createWebhook } from '../../src/plugins/changes/webhook.js';
import { createChangeLog } from '../../src/plugins/changes/change-log.js';
import { newChangeFile, startWebhookReceiver } from '../support/changes.js';
import { startDemoServer } from '../support/demo.js';
import { putNumbered } from '../support/demo-writes.js';
import { startOperated } from '../support/operated-proxy.js';
import { metric } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const KEY = Buffer.alloc(32, 7);
const PATH = '/api/handles/21.T11998/hooked';

async function startHooked(secret = KEY.toString('base64')) {
  const receiver = await startWebhookReceiver();
  const file = newChangeFile();
  const proxy = await startOperated(demo.url, {
    CHANGES_FILE: file.path,
    CHANGES_WEBHOOK_URL: receiver.url,
    CHANGES_WEBHOOK_SECRET: secret,
  });
  /** Returns the received changes without the gap that each process begins with. */
  const received = () => receiver.received().filter(({ operation }) => operation !== 'gap');
  return { receiver, received, file, proxy };
}

describe('change webhook', () => {
  it.each(['', 'whsec_'])(
    'signs the body with HMAC-SHA256 for a secret with the prefix "%s"',
    async (prefix) => {
      const { receiver, received, proxy, file } = await startHooked(prefix + KEY.toString('base64'));
      await putNumbered(proxy.url, PATH, 1);
      await expect.poll(received).toEqual(file.lines());
      const [delivery] = receiver.deliveries;
      const { 'webhook-id': id, 'webhook-timestamp': time, ...headers } = delivery?.headers ?? {};
      const signed = `${String(id)}.${String(time)}.${delivery?.body ?? ''}`;
      const signature = createHmac('sha256', KEY).update(signed).digest('base64');
      expect(headers).toMatchObject({
        'webhook-signature': `v1,${signature}`,
        'content-type': 'application/json',
      });
    },
  );

  it('begins with a gap, because an earlier process may not have posted all changes', async () => {
    const { receiver, received, proxy, file } = await startHooked();
    await expect.poll(receiver.received).toEqual([
      {
        ...{ operation: 'gap', dropped: 0, time: expect.any(String) as string },
        instance: expect.any(String) as string,
      },
    ]);
    await putNumbered(proxy.url, PATH, 1);
    await expect.poll(received).toEqual(file.lines());
    expect(receiver.received()).toHaveLength(2);
  });

  it('posts without derived signals, which Node.js 20 keeps for as long as their source', async () => {
    const derive = vi.spyOn(AbortSignal, 'any');
    onTestFinished(() => {
      derive.mockRestore();
    });
    const { received, proxy, file } = await startHooked();
    await putNumbered(proxy.url, PATH, 1);
    await expect.poll(received).toEqual(file.lines());
    expect(derive).not.toHaveBeenCalled();
  });

  it('retries a failed delivery, followed by later changes in order', async () => {
    const { receiver, received, proxy, file } = await startHooked();
    receiver.respond(500);
    await putNumbered(proxy.url, PATH, 1);
    await expect.poll(() => receiver.deliveries.length).toBeGreaterThan(0);
    await putNumbered(proxy.url, PATH, 2);
    await putNumbered(proxy.url, PATH, 3);
    expect(received()).toEqual([]);
    receiver.respond(200);
    await expect.poll(received).toEqual(file.lines());
    expect(await metric(proxy, 'handle_proxy_changes_dropped_total')).toBe(0);
  });

  it('posts long changes in bodies that usual web servers accept', async () => {
    const { receiver, received, proxy, file } = await startHooked();
    receiver.respond(503);
    // Any client may cause such changes while the Handle server fails, and its names are escaped in JSON.
    const handles = Array.from({ length: 50 }, (_, at) => `21.T11998/${at}${'\u0001'.repeat(2000)}`);
    await request(proxy.app.admin).post('/purge').send({ handles }).expect(200);
    receiver.respond(200);
    await expect.poll(received).toEqual(file.lines());
    const sizes = receiver.deliveries.map(({ body }) => body.length);
    expect(Math.max(...sizes)).toBeLessThan(100_000);
  });

  it('delivers the remaining changes when the process stops', async () => {
    const { receiver, received, proxy, file } = await startHooked();
    receiver.respond(503);
    await putNumbered(proxy.url, PATH, 1);
    await expect.poll(() => receiver.deliveries.length).toBeGreaterThan(0);
    receiver.respond(200);
    await proxy.close();
    expect(received()).toEqual(file.lines());
  });

  it('tries again when it is stopped during an attempt that fails', async () => {
    const receiver = await startWebhookReceiver();
    const formatGap = (): string => '{"operation":"gap"}';
    const cache = { commands: undefined, era: () => undefined };
    const feed = createChangeLog(
      partial(cache),
      { maxEntries: 10, maxChars: Infinity },
      () => 1000,
      formatGap,
    );
    const webhook = createWebhook(
      { url: receiver.url, secret: undefined },
      feed,
      { ...systemClock, after: () => () => undefined },
      {
        formatGap,
        onDropped: () => undefined,
        onFailing: () => undefined,
        onRecovered: () => undefined,
      },
    );
    receiver.respond(503);
    const release = receiver.hold();
    await feed.append(['{"operation":"update"}']);
    await expect.poll(() => receiver.deliveries.length).toBe(1);
    const closed = webhook.close();
    receiver.respond(200);
    release();
    await closed;
    expect(receiver.received()).toEqual([{ operation: 'gap' }, { operation: 'update' }]);
  });
});
