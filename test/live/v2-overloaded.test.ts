// ePIC v2 writes that were executed while the proxy has no room to process their large record: they succeed without an ETag.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { RequestWork } from '../../src/time-slicer.js';
import { startDemoServer } from '../support/demo.js';
import { gate } from '../support/gate.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { askV2, read, urlTo } from '../support/v2.js';

const demo = await startDemoServer();

/** Occupies the room for large records until the returned function is called. */
function fillRoom({ app: { host } }: Proxy): () => Promise<void> {
  const emptied = gate();
  let isFull = true;
  const { signal } = new AbortController();
  const others = new RequestWork(host.slicer, '192.0.2.0/24', () => signal);
  const { maxRecordBytes } = host.settings.current.upstream;
  const steps = function* (): Generator<void, void> {
    while (isFull) yield;
    emptied.open();
  };
  const work = Promise.resolve(others.run(steps(), 65 * maxRecordBytes));
  return async () => {
    isFull = false;
    await emptied.opened;
    await work;
  };
}

const large = (place: string): unknown[] => [urlTo(place), { type: 'NOTE', parsed_data: 'x'.repeat(20_000) }];

/** Sends a write, for whose record there is no room as soon as the Handle server has executed it. */
async function writeWithoutRoom(proxy: Proxy, method: 'POST' | 'PUT', path: string, place: string) {
  demo.hold.holdReplies('PUT');
  const answer = askV2(proxy.url)(path, { method, body: large(place) });
  await expect.poll(() => demo.hold.size).toBe(1);
  const emptyRoom = fillRoom(proxy);
  demo.hold.sendHeld('PUT');
  const { status, headers } = await answer;
  await emptyRoom();
  return { status, etag: headers.etag };
}

describe('ePIC v2 write of a large record without room for its ETag', () => {
  test.each([
    ['POST', '/21.T11998', 'posted', 201],
    ['PUT', '/21.T11998/large', 'put', 201],
    ['PUT', '/21.T11998/large', 'replaced', 204],
  ] as const)('succeeds: %s %s (%s)', async (method, path, place, status) => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    expect(await writeWithoutRoom(proxy, method, path, place)).toEqual({ status, etag: undefined });
    expect(read(await askV2(proxy.url)(`/21.T11998?URL=*/${place}`))).toHaveLength(1);
  });
});
