// Hostile clients on the native ports of the built program: silent and trickling connections, invalid
// lengths, and incomplete fragmented requests. Other clients get their responses.
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { useBuiltProxies } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import {
  askTcp,
  exchangeTcp,
  exchangeUdp,
  openNativeSocket,
  openUdp,
  readToEnd,
  sendUdp,
} from '../support/native-client.js';
import { codeOf, nativeRequest, readResponse } from '../support/native-messages.js';

const HANDLE = '21.T11998/page';
const demo = await startDemoServer();
const REQUEST = nativeRequest(HANDLE);

const started = useBuiltProxies();
const ON = { NATIVE_TCP_PORT: '0', NATIVE_UDP_PORT: '0', NATIVE_UDP_BYTES_PER_SECOND: '0B' };

async function start(env: Record<string, string> = {}) {
  const proxy = await started({ UPSTREAM_URL: demo.url, ...ON, ...env });
  const listening = proxy.logs().find(({ msg }) => msg === 'listening')!;
  const portOf = (name: string): number => Number(String(listening[name]).split(':').at(-1));
  return { proxy, tcpPort: portOf('nativeTcp'), udpPort: portOf('nativeUdp') };
}

const MIB = 1024 * 1024;

/** Returns the resident memory of a process in bytes. */
const memoryOf = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;

/** Returns a request with `value` as the integer at this offset. */
function withInt(value: number, at: number): Buffer {
  const bytes = Buffer.from(REQUEST);
  bytes.writeInt32BE(value, at);
  return bytes;
}

describe('native listeners under hostile clients', () => {
  test('respond over TCP when silent connections have reached the limit', async () => {
    const { tcpPort } = await start({
      ...fixed({ native: { tcp: { maxConnections: 50, idleTimeoutMs: 600_000 } } }),
    });
    for (let count = 0; count < 50; count++) await openNativeSocket(tcpPort);
    const ask = async (): Promise<number | undefined> => {
      const answer = await exchangeTcp(tcpPort, [REQUEST]);
      return answer.length === 0 ? undefined : codeOf(readResponse(answer));
    };
    await expect.poll(ask, { timeout: 60_000, interval: 500 }).toBe(1);
  });

  test('respond with bounded memory despite 2,000 silent and 2,000 trickling connections', async () => {
    const patient = { idleTimeoutMs: 600_000, requestTimeoutMs: 600_000, maxConnections: 5000 };
    const { proxy, tcpPort } = await start(fixed({ native: { tcp: patient } }));
    expect(codeOf(await askTcp(tcpPort, HANDLE))).toBe(1);
    const before = memoryOf(proxy.pid);
    const sockets: Socket[] = [];
    for (let count = 0; count < 4000; count++) sockets.push(await openNativeSocket(tcpPort));
    const slow = sockets.slice(2000);
    const long = nativeRequest('a'.repeat(1000));
    for (let sent = 0; sent < 20; sent++) {
      for (const socket of slow) socket.write(long.subarray(sent, sent + 1));
      expect(codeOf(await askTcp(tcpPort, HANDLE))).toBe(1);
    }
    expect(memoryOf(proxy.pid) - before).toBeLessThan(100 * MIB);
    // The remaining bytes complete the message.
    const [first] = slow as [Socket];
    const answer = readToEnd(first);
    first.write(long.subarray(20));
    expect(codeOf(readResponse(await answer))).toBe(100);
  }, 120_000);

  test.each([
    ['a length of -1', withInt(-1, 16), 2],
    ['a length of 2 GiB', withInt(0x7fffffff, 16), 2],
    ['a length of 23', withInt(23, 16), 4],
    ['an unknown session', withInt(9, 4), 500],
    ['an unknown opcode', withInt(999, 20), 2],
    ['a body longer than the message', withInt(1_000_000, 40), 2],
    ['a handle longer than the message', withInt(1_000_000, 44), 2],
  ])('reject %s over TCP and UDP, and answer the next client', async (_, bytes, code) => {
    const { tcpPort, udpPort } = await start();
    expect(codeOf(readResponse(await exchangeTcp(tcpPort, [bytes])))).toBe(code);
    const [packet] = await exchangeUdp(udpPort, [bytes]);
    expect(codeOf(readResponse(packet!))).toBe(code);
    expect(codeOf(await askTcp(tcpPort, HANDLE))).toBe(1);
  });

  test('respond while packets from 7,000 incomplete requests exceed the buffer', async () => {
    const { udpPort } = await start();
    const part = Buffer.alloc(512);
    REQUEST.copy(part, 0, 0, 20);
    // A fragment of a 262,144-byte message.
    part.writeUInt8(0x20 | 2, 2);
    part.writeInt32BE(262_144, 16);
    const socket = await openUdp();
    for (let id = 0; id < 7000; id++) {
      part.writeInt32BE(id, 8);
      part.writeInt32BE(id % 500, 12);
      sendUdp(socket, udpPort, Buffer.from(part));
      // More packets at a time would exceed the socket's receive buffer.
      if (id % 50 !== 49) continue;
      const [answer] = await exchangeUdp(udpPort, [REQUEST]);
      expect(codeOf(readResponse(answer!))).toBe(1);
    }
  });
});
