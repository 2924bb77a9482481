// Traffic rules also match handles in batches, tunnelled messages and forms.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { elementsOf, postBatch } from '../support/batch.js';
import { startDemoServer } from '../support/demo.js';
import { codeOf, nativeRequest, readResponse } from '../support/native-messages.js';
import { type Proxy, startProxy } from '../support/proxy.js';

const demo = await startDemoServer();
const [HIDDEN, OTHER] = ['21.T11998/page', '21.T11998/DEMO'];

const start = (rule: object): Promise<Proxy> =>
  startProxy({ UPSTREAM_URL: demo.url, TRAFFIC_RULES: JSON.stringify([{ name: 'tested', ...rule }]) });

/** Starts a proxy with a rule that rejects `match`, and caches the record of `OTHER`. */
async function startRefusing(match: object): Promise<Proxy> {
  const proxy = await start({ match, answer: 403 });
  await postBatch(proxy, { handles: [OTHER] });
  return proxy;
}

const tunnel = async (proxy: Proxy, handle: string): Promise<number> => {
  const type = 'application/x-hdl-message';
  const headers = { Accept: type, 'Content-Type': type };
  const { body } = await proxy.ask('/', { method: 'POST', headers, body: nativeRequest(handle) });
  return codeOf(readResponse(body));
};

const form = async (proxy: Proxy, handle: string): Promise<number> => {
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const body = `hdl=${encodeURIComponent(handle)}`;
  return (await proxy.ask('/', { method: 'POST', headers, body })).status;
};

describe('traffic rules by handle and prefix', () => {
  describe.each([{ handle: HIDDEN }, { handle: HIDDEN.toUpperCase() }])('rule for %o', (match) => {
    test('rejects the handle in a batch and serves other handles', async () => {
      const proxy = await startRefusing(match);
      const handles = [OTHER, HIDDEN, OTHER];
      for (const answer of [
        await postBatch(proxy, { handles }),
        await proxy.ask(`/api/handles?${handles.map((handle) => `handle=${handle}`).join('&')}`),
      ]) {
        const elements = elementsOf(answer);
        expect(elements.map(({ status }) => status)).toEqual([200, 403, 200]);
        expect(JSON.stringify(elements[1])).not.toContain('values');
      }
    });

    test('rejects the handle in the tunnel and serves other handles', async () => {
      const proxy = await startRefusing(match);
      expect(await tunnel(proxy, HIDDEN)).toBe(2);
      expect([await tunnel(proxy, OTHER), await tunnel(proxy, OTHER)]).toEqual([1, 1]);
    });

    test('rejects the handle in a form', async () => {
      const proxy = await startRefusing(match);
      expect(await form(proxy, HIDDEN)).toBe(403);
      expect(await form(proxy, OTHER)).toBe(302);
    });
  });

  test('count each handle of a batch towards a prefix limit', async () => {
    const proxy = await start({ match: { prefix: '21.T11998' }, limit: { perMinute: 3 } });
    const elements = elementsOf(await postBatch(proxy, { handles: [OTHER, OTHER, OTHER, OTHER, OTHER] }));
    expect(elements.map(({ status }) => status).sort()).toEqual([200, 200, 200, 429, 429]);
    const { values } = await proxy.metric('handle_proxy_traffic_rule_requests_total');
    expect(values.find(({ labels }) => labels['result'] === 'limited')?.value).toBe(2);
  });
});
