// Requests wait for a few slices of the work of others, whatever it is: reads, accepted connections, chunks, steps.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { RowStore } from '../../src/cache/memory/row-store.js';
import { TimeSlicer } from '../../src/time-slicer.js';
import { DEMO_PREFIX, textValue } from '../../src/dev-server/seed.js';
import { startDemoServer } from '../support/demo.js';
import { NAME } from '../support/expensive-requests.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { openSocket } from '../support/raw-socket.js';
import { STEPS_PER_SLICE, sliceBySteps } from '../support/slices.js';
import { USER01 } from '../support/v2.js';

const demo = await startDemoServer();
const entryOf = Reflect.get(RowStore.prototype, 'entry');
const writeOf = Reflect.get(ServerResponse.prototype, 'write');

const start = (): Promise<Proxy> => startProxy({ UPSTREAM_URL: demo.url, HTTP_TRUSTED_PROXIES: 'loopback' });

describe('request cost', () => {
  describe('of many concurrent clients', () => {
    const MANY = 40;
    const names = Array.from({ length: MANY }, (_, at) => `${NAME}.${at}`);

    /** Caches records of half a MiB each. */
    async function cacheMany(proxy: Proxy): Promise<void> {
      for (const name of names) {
        demo.put(
          name,
          Array.from({ length: 500 }, (_, at) => textValue(at + 1, 'PAD', `${name} ${'x'.repeat(1000)}`)),
        );
        expect((await proxy.ask(`/api/handles/${name}`)).status).toBe(200);
      }
    }

    test.each(['?index=1', ''])('reads few records in a turn: GET of each record%s', async (query) => {
      const proxy = await start();
      await cacheMany(proxy);
      let [time, reads, most] = [0, 0, 0];
      const slicer = new TimeSlicer({ monotonic: () => time, nextTurn: setImmediate });
      const bound = TimeSlicer.prototype.run.bind(slicer);
      const run = vi.spyOn(TimeSlicer.prototype, 'run').mockImplementation(bound);
      const entry = vi.spyOn(RowStore.prototype, 'entry').mockImplementation(function (this: RowStore, at) {
        if (this.isLarge(at)) {
          // On this clock, a read takes 1 ms.
          time++;
          most = Math.max(most, ++reads);
          if (reads === 1) setImmediate(() => (reads = 0));
        }
        return entryOf.call(this, at);
      });
      onTestFinished(() => {
        run.mockRestore();
        entry.mockRestore();
      });
      const openBefore = await proxy.connections();
      const sockets = await Promise.all(names.map(() => openSocket(proxy.url)));
      // Node accepts a connection per turn, and would otherwise receive a request per turn.
      while ((await proxy.connections()) < openBefore + MANY) await nextTurn();
      const closed = Promise.all(
        sockets.map(async (socket) => {
          const [chunk] = (await once(socket, 'data')) as [Buffer];
          expect(chunk.toString('latin1')).toMatch(/^HTTP\/1.1 200/);
          await once(socket.resume(), 'close');
        }),
      );
      for (const [at, socket] of sockets.entries()) {
        const target = `/api/handles/${names[at]}${query}`;
        socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      }
      await closed;
      // A slice of five, and as many again for the responses that are prepared.
      expect(most).toBeGreaterThan(0);
      expect(most).toBeLessThanOrEqual(15);
    });

    test('accepts 64 new connections within the turns after a few slices', async () => {
      const proxy = await start();
      demo.put(
        NAME,
        Array.from({ length: 5000 }, (_, at) => textValue(at + 1, 'DESC', `text ${at}`)),
      );
      expect((await proxy.ask(`/api/handles/${NAME}?index=1`)).status).toBe(200);
      const steps = sliceBySteps();
      let [isOver, number] = [false, 0];
      const attack = async (): Promise<void> => {
        while (!isOver) await proxy.ask(`/api/handles/${NAME}?index=${++number}`);
      };
      const attackers = Array.from({ length: 8 }, attack);
      await expect.poll(steps).toBeGreaterThan(STEPS_PER_SLICE);
      const [openBefore, stepsBefore] = [await proxy.connections(), steps()];
      await Promise.all(Array.from({ length: 64 }, () => openSocket(proxy.url)));
      while ((await proxy.connections()) < openBefore + 64) await nextTurn();
      const slices = (steps() - stepsBefore) / STEPS_PER_SLICE;
      isOver = true;
      await Promise.all(attackers);
      // Node accepts a connection per turn: 64 slices without free turns.
      expect(slices).toBeLessThanOrEqual(16);
    });
  });

  test('includes only chunks of 64 KiB of a streamed element in a connection', async () => {
    const proxy = await start();
    demo.put(NAME, [textValue(1, 'PAD', 'é'.repeat(500_000)), textValue(2, 'PAD', 'x'.repeat(500_000))]);
    const longest = { bytes: 0 };
    const write = vi.spyOn(ServerResponse.prototype, 'write').mockImplementation(function (
      this: ServerResponse,
      chunk: unknown,
      ...rest: unknown[]
    ) {
      longest.bytes = Math.max(longest.bytes, Buffer.byteLength(chunk as Buffer));
      return Reflect.apply(writeOf, this, [chunk, ...rest]) as boolean;
    });
    onTestFinished(() => {
      write.mockRestore();
    });
    const { text } = await proxy.ask(`/api/handles?handle=${NAME}&handle=${NAME}`);
    expect(Buffer.byteLength(text)).toBeGreaterThan(3_000_000);
    expect(longest.bytes).toBe(64 * 1024);
  });

  test('is charged for the indentation of a long refusal, although it has no record', async () => {
    const refusal = JSON.stringify({ responseCode: 301, message: 'x'.repeat(60_000) });
    const server = createServer((_req, res) => {
      res.writeHead(400, { 'Content-Type': 'application/json' }).end(refusal);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const proxy = await startProxy({ UPSTREAM_URL: `http://127.0.0.1:${port}` });
    const steps = sliceBySteps();
    /** Returns the number of steps of a request. */
    const stepsOf = async (query: string): Promise<number> => {
      const before = steps();
      const { status, text } = await proxy.ask(`/api/handles/${NAME}${query}`);
      expect([status, text.includes('x'.repeat(60_000))]).toEqual([400, true]);
      return steps() - before;
    };
    const compact = await stepsOf('');
    // At least a step per KiB.
    expect((await stepsOf('?pretty')) - compact).toBeGreaterThanOrEqual(60);
  });

  test('is charged for each step of an ePIC v2 search, also of short records', async () => {
    const proxy = await start();
    const RECORDS = 300;
    const all = Array.from({ length: RECORDS }, (_, at) => `${DEMO_PREFIX}/SEARCHED.${at}`);
    for (const name of all) demo.put(name, [textValue(1, 'NOTE', 'text'), textValue(2, 'DESC', 'other')]);
    const headers = { Authorization: USER01 };
    const search = () => proxy.ask(`/api/v2/handles/${DEMO_PREFIX}?NOTE=text&handle=SEARCHED.*`, { headers });
    expect(JSON.parse((await search()).text)).toHaveLength(RECORDS);
    const steps = sliceBySteps();
    expect((await search()).status).toBe(200);
    // Reading memory, parsing and matching.
    expect(steps()).toBeGreaterThanOrEqual(3 * RECORDS);
  });
});
