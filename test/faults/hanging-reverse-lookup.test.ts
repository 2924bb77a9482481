// A reverse lookup service hangs: the requests of one client, also after it has left, take no slot of the others.
import '../support/real-sockets.js';
import { request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { listenHttp } from '../live/upstream-loopback.js';
import { startProxy } from '../support/proxy.js';

/** More than the connections to the service. */
const MANY = 150;
/** Slots that a single client may have: three quarters of `upstream.concurrency`. */
const SHARE = 48;

const TARGET = '/hrls/handles?URL=*';
const from = (address: string) => ({ 'X-Forwarded-For': address });

test.each(['waits', 'has left'])(
  'another client is answered while one with many requests %s',
  async (state) => {
    let asked = 0;
    const service = await listenHttp((req, res) => {
      asked++;
      if (req.url === `${TARGET}&other`) res.end('[]');
    });
    const proxy = await startProxy({ REVERSE_LOOKUP_URL: service.url, HTTP_TRUSTED_PROXIES: 'loopback' });
    const greedy = Array.from({ length: MANY }, () =>
      request(`${proxy.url}${TARGET}`, { headers: from('192.0.2.1') })
        .on('error', () => undefined)
        .end(),
    );
    const leave = (): void => {
      for (const each of greedy) each.destroy();
    };
    onTestFinished(leave);
    await expect.poll(() => asked).toBeGreaterThanOrEqual(SHARE);
    if (state === 'has left') leave();
    const { status, text } = await proxy.ask(`${TARGET}&other`, { headers: from('198.51.100.1') });
    expect([status, text, asked]).toEqual([200, '[]', SHARE + 1]);
  },
);
