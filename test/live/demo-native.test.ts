// The native protocol of `npm run demo`: port 2641, or a different port when 2641 is in use.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { portIfFree } from '../../src/dev-server/port-if-free.js';
import { startProgram } from '../support/built-proxy.js';
import { askTcp, exchangeUdp, openUdp } from '../support/native-client.js';
import { codeOf, indexesIn, nativeRequest, readResponse } from '../support/native-messages.js';

const HANDLE = '21.T11998/DEMO';
const MAIN = 'dist-demo/main.js';
const PORTS = { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0', HANDLE_SERVER_PORT: '0' };

async function startDemo(): Promise<{ tcpPort: number; udpPort: number }> {
  const { stdout } = startProgram([MAIN], PORTS);
  await expect.poll(stdout).toContain('Press Ctrl-C');
  const portOf = (scheme: string): number =>
    Number(new RegExp(`${scheme}://127\\.0\\.0\\.1:(\\d+)`).exec(stdout())?.[1]);
  return { tcpPort: portOf('tcp'), udpPort: portOf('udp') };
}

describe('native protocol of the demo', () => {
  test('resolves handles over TCP and UDP, and returns a site, in two demos on separate ports', async () => {
    const demos = [await startDemo(), await startDemo()];
    expect(new Set(demos.map(({ tcpPort }) => tcpPort)).size).toBe(2);
    expect(new Set(demos.map(({ udpPort }) => udpPort)).size).toBe(2);
    for (const { tcpPort, udpPort } of demos) {
      expect(indexesIn(await askTcp(tcpPort, HANDLE))).toContain(1);
      const [answer] = await exchangeUdp(udpPort, [nativeRequest(HANDLE)]);
      expect(indexesIn(readResponse(answer!))).toContain(1);
      expect(codeOf(await askTcp(tcpPort, '/', { opCode: 2 }))).toBe(1);
    }
  });

  test('uses the default port when it is free, and otherwise a different port', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    expect(await portIfFree('tcp', '127.0.0.1', port)).toBe('0');
    server.close();
    await once(server, 'close');
    expect(await portIfFree('tcp', '127.0.0.1', port)).toBe(String(port));

    const socket = await openUdp();
    const { port: udpPort } = socket.address();
    expect(await portIfFree('udp', '127.0.0.1', udpPort)).toBe('0');
    socket.close();
    await once(socket, 'close');
    expect(await portIfFree('udp', '127.0.0.1', udpPort)).toBe(String(udpPort));
  });

  test('fails to start when a configured port is in use', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const { exited, stderr } = startProgram([MAIN], { ...PORTS, NATIVE_TCP_PORT: String(port) });
    expect(await exited).toMatchObject({ code: 2 });
    expect(stderr()).toContain('set native.tcp.port (NATIVE_TCP_PORT)');
  });
});
