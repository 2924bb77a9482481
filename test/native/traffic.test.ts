// Traffic rules for native TCP messages, whose sender is verified: they apply only to misses.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { OP_FLAG } from '../../src/plugins/native/codec.js';
import { startDemoServer } from '../support/demo.js';
import { configFrom } from '../support/load-config.js';
import { askTcp, exchangeUdp } from '../support/native-client.js';
import { PUBLIC, codeOf, nativeRequest, readResponse } from '../support/native-messages.js';
import { type Proxy, startProxy } from '../support/proxy.js';

const HANDLE = '21.T11998/page';
const OTHER = '21.T11998/none';
const demo = await startDemoServer();

async function start(rules: object[], env: Record<string, string> = {}): Promise<Proxy> {
  demo.reset();
  return startProxy({
    UPSTREAM_URL: demo.url,
    NATIVE_TCP_PORT: '0',
    NATIVE_UDP_PORT: '0',
    TRAFFIC_RULES: JSON.stringify(rules),
    ...env,
  });
}

const codeOver = async ({ tcpPort }: Proxy, handle = HANDLE): Promise<number> =>
  codeOf(await askTcp(tcpPort, handle));

async function usesOf(proxy: Proxy): Promise<Record<string, number>> {
  const used = (await proxy.metrics()).find(
    ({ name }) => name === 'handle_proxy_traffic_rule_requests_total',
  );
  return Object.fromEntries(used!.values.map(({ labels, value }) => [String(labels['result']), value]));
}

describe('traffic rules for native messages', () => {
  describe('that reject messages', () => {
    test.each([
      ['native messages', { interface: 'native' }, true],
      ['a handle', { handle: '21.T11998/pa*' }, true],
      ['a prefix', { prefix: '21.T11998' }, true],
      ['a network', { network: '127.0.0.0/8' }, true],
      ['misses', { reads: 'misses' }, true],
      ['everything', {}, true],
      ['a different network', { network: '192.0.2.0/24' }, false],
      ['a different handle', { handle: '21.T11998/x' }, false],
      ['a different interface', { interface: ['record', 'redirect'] }, false],
      ['hits', { reads: 'hits' }, false],
      ['a method of HTTP', { method: ['GET', 'POST'] }, false],
      ['credentials', { credentials: true }, false],
      ['a user agent', { userAgent: '*' }, true],
    ])(
      'apply to a native message only if it has the matched property: %s',
      async (_what, match, isRefused) => {
        const proxy = await start([{ name: 'tested', match, answer: 403 }]);
        expect(await codeOver(proxy)).toBe(isRefused ? 2 : 1);
        expect(demo.asked).toBe(isRefused ? 0 : 1);
      },
    );

    test('do not reject hits', async () => {
      const proxy = await start([{ name: 'native', match: { interface: 'native' }, answer: 429 }]);
      await proxy.ask(`/api/handles/${HANDLE}`);
      expect([await codeOver(proxy), await codeOver(proxy, OTHER)]).toEqual([1, 2]);
      expect(await usesOf(proxy)).toMatchObject({ limited: 1 });
    });

    test('do not reject a hit of a request that includes private values', async () => {
      const proxy = await start([{ name: 'native', match: { interface: 'native' }, answer: 429 }]);
      await proxy.ask(`/api/handles/${HANDLE}`);
      const flags = PUBLIC & ~OP_FLAG.publicOnly;
      expect(codeOf(await askTcp(proxy.tcpPort, HANDLE, { flags, indexes: [1] }))).toBe(1);
      expect(codeOf(await askTcp(proxy.tcpPort, HANDLE, { flags }))).toBe(2);
    });

    test('add no error to the status page, and count matches as for HTTP', async () => {
      const proxy = await start([{ name: 'all', answer: 403 }]);
      await codeOver(proxy);
      await proxy.ask(`/api/handles/${HANDLE}`);
      const { recentErrors, requests } = await proxy.app.operations.stats();
      expect([recentErrors, requests.byResult]).toEqual([[], { refused: 2 }]);
    });

    test('do not reject UDP messages, whose sender may be forged', async () => {
      const proxy = await start([{ name: 'native', match: { interface: 'native' }, answer: 429 }]);
      const [packet] = await exchangeUdp(proxy.udpPort, [nativeRequest(HANDLE)]);
      expect(codeOf(readResponse(packet!))).toBe(1);
    });
  });

  test('reject a miss above the limit with code 2 until the bucket is refilled', async () => {
    const limit = { perMinute: 2 };
    const proxy = await start([{ name: 'native', match: { interface: 'native' }, limit }]);
    const codes = [];
    for (const suffix of ['a', 'b', 'c']) codes.push(await codeOver(proxy, `21.T11998/${suffix}`));
    expect(codes).toEqual([100, 100, 2]);
    expect(await usesOf(proxy)).toMatchObject({ matched: 2, limited: 1 });
    proxy.pass(30_000);
    expect(await codeOver(proxy, '21.T11998/c')).toBe(100);
  });

  test('are replaced by a reload', async () => {
    const proxy = await start([{ name: 'native', match: { interface: 'native' }, answer: 429 }]);
    expect(await codeOver(proxy)).toBe(2);
    proxy.app.reload(configFrom({ env: { UPSTREAM_URL: demo.url, NATIVE_TCP_PORT: '0' } }));
    expect(await codeOver(proxy)).toBe(1);
  });

  test('do not apply behind a load balancer, which hides the clients', async () => {
    const rules = [{ name: 'native', match: { interface: 'native' }, answer: 429 }];
    const proxy = await start(rules, { HTTP_TRUSTED_PROXIES: 'loopback' });
    expect(await codeOver(proxy)).toBe(1);
  });
});
