// `server.reusePort`: two instances on one port, over TCP and UDP, where Node.js and the system support it.
import { ENVELOPE_BYTES, decodeEnvelope, toPackets } from '../../src/plugins/native/codec.js';
import { describe, expect, test } from 'vitest';
import { canReusePort } from '../../src/config/start-problems.js';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy, startMain } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { nextMessage, openUdp, sendUdp } from '../support/native-client.js';
import { indexesIn, nativeRequest, readResponse } from '../support/native-messages.js';
import { testWithReusePort } from '../support/programs.js';
import { adminValue, textValue } from '../../src/dev-server/seed.js';
import { freePort } from '../support/free-port.js';

const HANDLE = '21.T11998/page';
const PATH = `/api/handles/${HANDLE}`;
const demo = await startDemoServer();
demo.put(HANDLE, [textValue(1, 'URL', 'https://example.org/'), adminValue()]);

async function startTwo(): Promise<{ proxies: [BuiltProxy, BuiltProxy]; udpPort: number }> {
  const [port, nativePort] = [await freePort(), await freePort()];
  const env = {
    UPSTREAM_URL: demo.url,
    SERVER_REUSE_PORT: 'true',
    PORT: String(port),
    NATIVE_TCP_PORT: String(nativePort),
    NATIVE_UDP_PORT: String(nativePort),
    NATIVE_UDP_BYTES_PER_SECOND: '0B',
  };
  return { proxies: [await startBuiltProxy(env), await startBuiltProxy(env)], udpPort: nativePort };
}

async function countOf({ adminUrl }: BuiltProxy, family: string): Promise<number> {
  const { requests } = JSON.parse((await ask(adminUrl, '/stats')).text) as {
    requests: { byInterface: Record<string, number> };
  };
  return requests.byInterface[family] ?? 0;
}

describe('server.reusePort', () => {
  testWithReusePort('distributes connections on the public port to two instances', async () => {
    const { proxies } = await startTwo();
    const [one, other] = proxies;
    expect(one.url).toBe(other.url);
    const askMany = () => Promise.all(Array.from({ length: 40 }, () => ask(one.url, PATH)));
    const answers = await askMany();
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    const [first, second] = [await countOf(one, 'record'), await countOf(other, 'record')];
    expect(first + second).toBe(40);
    expect(Math.min(first, second)).toBeGreaterThan(0);
  });

  testWithReusePort('sends all packets of a UDP message to one of two instances', async () => {
    const { proxies, udpPort } = await startTwo();
    for (let requestId = 1; requestId <= 40; requestId++) {
      const request = nativeRequest(HANDLE, { types: ['x'.repeat(3000), 'URL'], requestId });
      const packets = toPackets(decodeEnvelope(request), request.subarray(ENVELOPE_BYTES));
      // Each message needs a separate socket because the kernel selects the instance by source port.
      const socket = await openUdp();
      const answer = nextMessage(socket);
      for (const packet of packets) sendUdp(socket, udpPort, packet);
      const [reply] = await answer;
      expect(indexesIn(readResponse(reply!))).toEqual([1]);
    }
    const counts = await Promise.all(proxies.map((proxy) => countOf(proxy, 'native-udp')));
    expect(counts[0]! + counts[1]!).toBe(40);
    expect(Math.min(...counts)).toBeGreaterThan(0);
  });

  testWithReusePort('sends every new connection to the remaining instance after a kill', async () => {
    const { proxies } = await startTwo();
    const [killed, left] = proxies;
    expect(await killed.stop('SIGKILL')).toMatchObject({ signal: 'SIGKILL' });
    const answers = await Promise.all(Array.from({ length: 40 }, () => ask(left.url, PATH)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(40);
  });

  test.runIf(!canReusePort())(
    'fails the start with one sentence where the system does not support it',
    async () => {
      const { exited, stderr } = startMain({ UPSTREAM_URL: demo.url, SERVER_REUSE_PORT: 'true' });
      expect(await exited).toEqual({ code: 2, signal: null });
      expect(stderr()).toMatch(
        /^Invalid configuration:\n {2}server\.reusePort \(variable SERVER_REUSE_PORT\): needs Node\.js 22\.12 .*\n$/,
      );
    },
  );
});
