// UDP response limits per network, for every address family of the socket.
import type { Host } from '../../src/host.js';
import { partial } from '../support/partial.js';
import { describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import type { NativeConfig } from '../../src/plugins/native/plugin.js';
import { createUdpListener } from '../../src/plugins/native/udp.js';
import { TimeSlicer } from '../../src/time-slicer.js';
import { testContext } from '../support/context.js';
import { createUncached, codeOf, nativeRequest, readResponse } from '../support/native-messages.js';
import { HANDLE } from '../support/upstream.js';

describe('UDP response limit per network', () => {
  test.each([
    ['0.0.0.0', ['192.0.2.1', '192.0.2.9', '198.51.100.1']],
    ['::', ['::ffff:192.0.2.1', '::ffff:192.0.2.9', '::ffff:198.51.100.1']],
    ['::', ['2001:db8:0:1200::1', '2001:db8:0:ff00::9', '2001:db8:1::1']],
  ])('applies on %s to the second address of %o, but not to the third', (host, addresses) => {
    const context = testContext({ clock: { ...systemClock, now: () => 0, monotonic: () => 0 } });
    const native = createUncached(context, () => ({
      responseCode: 100,
      body: { kind: 'text', text: '' },
      result: 'hit',
    }));
    const slicer = new TimeSlicer({ monotonic: () => 0, nextTurn: setImmediate });
    const config = { server: { host, reusePort: false }, native: { udp: { bytesPerSecond: 1 } } };
    const { socket } = createUdpListener(
      partial<NativeConfig>(config),
      partial<Host>({ ...context, slicer }),
      native,
      () => false,
    );
    const replies: Buffer[] = [];
    vi.spyOn(socket, 'send').mockImplementation((packet: unknown) => void replies.push(packet as Buffer));
    for (const address of addresses) {
      socket.emit('message', nativeRequest(HANDLE), { address, port: 2641, family: 'IPv4', size: 0 });
    }
    expect(replies.map((packet) => codeOf(readResponse(packet)))).toEqual([100, 2, 100]);
    socket.close();
  });
});
