// The fence of a write with an unknown outcome lasts for upstream.writeTimeout, 2 s in the queue and 15 s.
import nock from 'nock';
import { describe, expect, test } from 'vitest';
import { RESPONSE_CODE } from '../../src/handle/outcome.js';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import {
  HANDLE,
  type MockUpstream,
  PATH,
  UPSTREAM_URL,
  VALUES,
  mockUpstream,
  recordOf,
} from '../support/upstream.js';
import { askV2 } from '../support/v2.js';
import { mockWrites } from '../support/writes.js';

useNock();

interface World {
  upstream: MockUpstream;
  proxy: Proxy;
}

async function writeWithUnknownEnd(env: Record<string, string> = {}): Promise<World> {
  const upstream = mockUpstream(recordOf());
  mockWrites({ status: 0, error: 'ECONNRESET' });
  const proxy = await startProxy(env);
  await proxy.ask(PATH, { method: 'PUT', body: '[]' });
  return { upstream, proxy };
}

const REQUEST_MS = 25_000;

/** Writes two values by index, in two slow requests, because the server hides a value. The last gets no response. */
async function writeInTwoRequests(): Promise<World> {
  const record = recordOf([VALUES[0]]);
  const hidden = {
    status: 403,
    body: { responseCode: RESPONSE_CODE.insufficientPermissions, handle: HANDLE },
  };
  const upstream = mockUpstream((target) => (target.includes('publicOnly=true') ? record : hidden));
  const proxy = await startProxy();
  const sent: string[] = [];
  const puts = nock(UPSTREAM_URL)
    .persist()
    .put(/^\/api/);
  puts.reply((target, _body, callback) => {
    proxy.pass(REQUEST_MS);
    const lost = Object.assign(new Error('ECONNRESET'), { code: 'ECONNRESET' });
    const done = { responseCode: RESPONSE_CODE.success, handle: HANDLE };
    callback(sent.push(target) === 1 ? null : lost, [200, done]);
  });
  const body = [
    { idx: 1, type: 'URL', parsed_data: 'https://example.org/new' },
    { idx: 2, type: 'NOTE', parsed_data: 'new' },
  ];
  const { status } = await askV2(proxy.url)(`/${HANDLE}`, { method: 'PUT', body });
  expect([status, sent.length]).toEqual([504, 2]);
  upstream.answers(record);
  return { upstream, proxy };
}

/** Whether the response to the first of two reads was stored. */
async function isStored({ upstream, proxy }: World): Promise<boolean> {
  await proxy.ask(PATH);
  const { asked } = upstream;
  await proxy.ask(PATH);
  return upstream.asked === asked;
}

describe('fence of a write with an unknown outcome', () => {
  test('prevents loaded records from being stored for 47 s by default', async () => {
    const world = await writeWithUnknownEnd();
    expect(await isStored(world)).toBe(false);
    world.proxy.pass(46_999);
    expect(await isStored(world)).toBe(false);
    world.proxy.pass(1);
    expect(await isStored(world)).toBe(true);
  });

  test('lasts for 47 s after the last request was sent when the write takes several', async () => {
    const world = await writeInTwoRequests();
    world.proxy.pass(46_999 - REQUEST_MS);
    expect(await isStored(world)).toBe(false);
    world.proxy.pass(1);
    expect(await isStored(world)).toBe(true);
  });

  test('lasts for the configured queue and write timeouts plus 15 s', async () => {
    const world = await writeWithUnknownEnd({
      UPSTREAM_WRITE_TIMEOUT: '5s',
      ...fixed({ upstream: { queueTimeoutMs: 1000 } }),
    });
    world.proxy.pass(20_999);
    expect(await isStored(world)).toBe(false);
    world.proxy.pass(1);
    expect(await isStored(world)).toBe(true);
  });
});
