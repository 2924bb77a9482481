// A proxy whose upstream is itself: it returns an error instead of looping (RFC 9110 §7.6.3).
import '../support/real-sockets.js';
import { once } from 'node:events';
import { type RequestListener, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createControlledServer } from '../support/demo-control.js';
import { fixed } from '../support/fixed.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { portOf } from '../support/site-values.js';
import { PATH } from '../support/upstream.js';

interface Door {
  url: string;
  /** Forwards all later requests to this proxy. */
  leadTo: (proxy: Proxy) => void;
  passes: () => number;
}

/** Opens a listener whose address is known before its proxy starts. */
async function openDoor(): Promise<Door> {
  let listener: RequestListener = () => undefined;
  let passes = 0;
  const server = createServer((req, res) => {
    passes++;
    listener(req, res);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const leadTo: Door['leadTo'] = ({ app }) => {
    listener = app.handler;
  };
  return { url: `http://127.0.0.1:${port}`, leadTo, passes: () => passes };
}

/** Starts a proxy whose upstream is the proxy itself. */
async function startLoop(): Promise<{ proxy: Proxy; passes: () => number }> {
  const door = await openDoor();
  const proxy = await startProxy({ UPSTREAM_URL: door.url, DELETION_HANDLES: 'true' });
  door.leadTo(proxy);
  return { proxy, passes: door.passes };
}

describe('proxy loop detection', () => {
  test.each([
    ['GET', PATH, {}],
    ['GET', PATH, { Authorization: 'Basic eDp5' }],
    ['GET', '/api/site', {}],
    ['PUT', PATH, {}],
    ['DELETE', PATH, {}],
    ['POST', PATH, {}],
  ])('returns 508 after one round for %s %s with %o', async (method, target, headers) => {
    const { proxy, passes } = await startLoop();
    const answer = await proxy.ask(target, { method, headers: headers });
    expect(answer.status).toBe(508);
    expect(JSON.parse(answer.text)).toMatchObject({ responseCode: 2 });
    expect(passes()).toBe(1);
  });

  test('does not report a chain of two proxies as a loop', async () => {
    const inner = await startProxy({ UPSTREAM_URL: 'http://127.0.0.1:9' });
    const outer = await startProxy({ UPSTREAM_URL: inner.url });
    expect((await outer.ask(PATH, { method: 'PUT', body: '[]' })).status).toBe(502);
  });

  describe("two proxies that are each other's upstream", () => {
    test.each([
      ['GET', PATH, {}],
      ['GET', `${PATH}?auth=true`, {}],
      ['GET', PATH, { Authorization: 'Basic eDp5' }],
      ['GET', `/api/handles?handle=21.T1/a`, {}],
      ['PUT', PATH, {}],
    ])('stop %s %s with %o after one round', async (method, target, headers) => {
      const doors = [await openDoor(), await openDoor()] as const;
      const first = await startProxy({ UPSTREAM_URL: doors[1].url });
      const second = await startProxy({ UPSTREAM_URL: doors[0].url });
      doors[0].leadTo(first);
      doors[1].leadTo(second);
      const { text } = await first.ask(target, { method, headers });
      expect(text).toMatch(/"responseCode":2/);
      expect(text).toContain('The request came back to this proxy');
      expect(doors.map(({ passes }) => passes())).toEqual([1, 1]);
    });
  });

  test('detects a loop through a prefix record', async () => {
    const doors = [await openDoor(), await openDoor()] as const;
    /** Starts a proxy that follows the record of 99.FAR to `door`. */
    const startBefore = async (door: Door): Promise<Proxy> => {
      const root = createControlledServer({
        prefixes: ['0.NA'],
        seed: { '0.NA/99.FAR': [siteAt(door.url)] },
      });
      onTestFinished(() => root.close());
      const { url } = await root.listen(0);
      return startProxy({
        UPSTREAMS: JSON.stringify([{ prefixes: '0.NA', url, readOnly: true }]),
        UPSTREAM_FOLLOW_REFERRALS: 'true',
        ...fixed({ upstream: { referralsToPrivateNetworks: true, referralPorts: [portOf(door)] } }),
      });
    };
    const first = await startBefore(doors[1]);
    doors[0].leadTo(first);
    doors[1].leadTo(await startBefore(doors[0]));
    const { text } = await first.ask('/api/handles/99.FAR/page');
    expect(text).toContain('The request came back to this proxy');
    expect(doors.map(({ passes }) => passes())).toEqual([1, 1]);
  });
});

function siteAt(url: string) {
  const interfaces = [{ query: true, admin: false, protocol: 'HTTP', port: Number(new URL(url).port) }];
  const value = {
    version: 1,
    protocolVersion: '2.11',
    serialNumber: 1,
    primarySite: true,
    multiPrimary: false,
    servers: [{ serverId: 1, address: '127.0.0.1', publicKey: {}, interfaces }],
  };
  return { index: 1, type: 'HS_SITE', data: { format: 'site', value } };
}
