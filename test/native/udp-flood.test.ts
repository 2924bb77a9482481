// A flood of UDP requests with possibly forged senders: other clients retain their upstream share.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { startHttpServer } from '../support/http-server.js';
import { openUdp, sendUdp } from '../support/native-client.js';
import { type NativeQuestion, PUBLIC, nativeRequest } from '../support/native-messages.js';
import { OP_FLAG } from '../../src/plugins/native/codec.js';
import { startProxy } from '../support/proxy.js';

const CONCURRENCY = 8;

/** Starts a Handle server that never responds. */
async function startSilentServer() {
  const asked: string[] = [];
  return { asked, url: await startHttpServer(({ url = '' }) => void asked.push(url)) };
}

describe('UDP flood', () => {
  test.each<[string, NativeQuestion]>([
    ['public values', {}],
    ['an index', { flags: PUBLIC & ~OP_FLAG.publicOnly, indexes: [1] }],
    ['private values', { flags: PUBLIC & ~OP_FLAG.publicOnly }],
  ])(
    'leaves a quarter of upstream.concurrency free for other clients (%s of a thousand handles)',
    async (_what, question) => {
      const { asked, url } = await startSilentServer();
      const proxy = await startProxy({
        UPSTREAM_URL: url,
        UPSTREAM_CONCURRENCY: String(CONCURRENCY),
        NATIVE_UDP_PORT: '0',
        NATIVE_UDP_BYTES_PER_SECOND: '0B',
      });
      const socket = await openUdp();
      for (let number = 0; number < 1000; number++) {
        sendUdp(socket, proxy.udpPort, nativeRequest(`21.T11998/udp-${number}`, question));
      }
      const flooding = (): number => asked.filter((path) => path.includes('udp-')).length;
      await expect.poll(flooding).toBe((CONCURRENCY * 3) / 4);
      void proxy.ask('/api/handles/21.T11998/page').catch(() => undefined);
      await expect.poll(() => asked.some((path) => path.includes('page'))).toBe(true);
      expect(flooding()).toBe((CONCURRENCY * 3) / 4);
    },
  );
});
